import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { closeUser } from '../../../src/domain/accounts/closing/close-now.js'
import { readWebFinger } from '../../../src/protocol/discovery/discovery-documents.js'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import type { TestPerson } from '../../support/people/local-users.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { buildPod, type TestPod } from '../../support/pods/build-pod.js'

describe('GET /.well-known/webfinger', () => {
  let pod: TestPod
  let ann: TestPerson
  beforeAll(async () => {
    pod = await buildPod({ environment: { POD_URL: 'https://p.example' } })
    ;({ ann } = await pod.people('ann'))
  })
  afterAll(() => pod.close())

  const ask = (resource: string) => pod.inject(`/.well-known/webfinger?resource=${resource}`)

  it('describes a local person', async () => {
    const { guid } = ann.account

    const response = await ask('acct:ann@p.example')

    expect(response.statusCode).toBe(200)
    expect(response.headers['content-type']).toBe('application/jrd+json; charset=utf-8')
    expect(response.headers['access-control-allow-origin']).toBe('*')
    expect(response.json()).toMatchObject({
      subject: 'acct:ann@p.example',
      aliases: [`https://p.example/people/${guid}`],
      links: expect.arrayContaining([
        {
          rel: 'http://microformats.org/profile/hcard',
          type: 'text/html',
          href: `https://p.example/hcard/users/${guid}`,
        },
        { rel: 'http://joindiaspora.com/seed_location', type: 'text/html', href: 'https://p.example/' },
        { rel: 'http://p.example/seed_location', type: 'text/html', href: 'https://p.example/' },
        { rel: 'salmon', href: `https://p.example/receive/users/${guid}` },
        { rel: 'http://ostatus.org/schema/1.0/subscribe', template: 'https://p.example/people?q={uri}' },
      ]),
    })
  })

  it('has the form that other pods read', async () => {
    const { body } = await ask('acct:ann@p.example')

    expect(readWebFinger(body, 'ann@p.example')).toEqual({
      hcardUrl: `https://p.example/hcard/users/${ann.account.guid}`,
      podUrl: 'https://p.example/',
    })
  })

  it.each([
    ['without acct:', 'ann@p.example'],
    ['percent-encoded and in capitals', 'acct%3AANN%40P.example'],
    ['with blanks around it', '%20acct:ann@p.example+'],
  ])('is the same document %s', async (_how, resource) => {
    const { body } = await ask('acct:ann@p.example')

    const response = await ask(resource)

    expect([response.statusCode, response.body]).toEqual([200, body])
  })

  it.each([
    ['an unknown local name', 'acct:nobody@p.example'],
    ['a known person of another pod', 'acct:quin@q.example'],
    ['a closed account', 'acct:gone@p.example'],
    ['a local name at another host', 'acct:ann@q.example'],
    ['something that is not an address', 'https://p.example/u/ann'],
  ])('answers 404 for %s', async (_who, resource) => {
    await Promise.all([addStrangerOnce(pod), pod.people('gone')])
    await closeUser(pod.pod, 'gone').catch(() => {}) // the second time it is closed already

    expect((await ask(resource)).statusCode).toBe(404)
  })

  it.each([
    '/.well-known/webfinger',
    '/.well-known/webfinger?resource=',
    '/.well-known/webfinger?resource=a&resource=b',
  ])('answers 400 without a resource, as in %s', async (url) => {
    expect((await pod.inject(url)).statusCode).toBe(400)
  })

  it('names this pod regardless of the requested host', async () => {
    const response = await pod.inject({
      url: '/.well-known/webfinger?resource=acct:ann@p.example',
      headers: { host: 'evil.example', 'x-forwarded-host': 'evil.example' },
    })

    expect(response.statusCode).toBe(200)
    expect(response.body).not.toContain('evil.example')
    expect(response.json().links).toContainEqual(expect.objectContaining({ href: 'https://p.example/' }))
  })

  it('runs one statement', async () => {
    expect(await statementsDuring(() => ask('acct:ann@p.example'))).toBe(1)
  })
})

let quin: Promise<unknown> | undefined
function addStrangerOnce(pod: TestPod): Promise<unknown> {
  quin ??= addRemotePerson(pod.pod, 'quin@q.example')
  return quin
}
