import type { ServerResponse } from 'node:http'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { setPodRule } from '../../../src/domain/moderation/pods/pod-rules.js'
import { ANONYMOUS_LOOKUP_LIMITS } from '../../../src/federation/discovery/limits.js'
import { REMOTE_LIMITS } from '../../../src/federation/remote-pod/limits.js'
import { RemotePod } from '../../../src/persistence/models/remote-pod.js'
import { type FakePods, startFakePods } from '../../support/federation/fake-pods.js'
import type { TestPerson } from '../../support/people/local-users.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { buildPod, type TestPod } from '../../support/pods/build-pod.js'

let fakePods: FakePods
let pod: TestPod
let path: string
let visitors = 0

beforeAll(async () => {
  fakePods = await startFakePods()
  pod = await buildPod({ fakePods, environment: { POD_URL: 'https://p.example', PAGE_LIMIT: '0' } })
  const { ann } = await pod.people('ann')
  path = personPath(ann)
})
afterAll(async () => {
  await pod.close()
  await fakePods.close()
})
beforeEach(() => {
  visitors += 1
})

const personPath = ({ account }: TestPerson) => `/people/${account.guid}`

async function follow(entered: string, remoteAddress = `203.0.113.${visitors}`) {
  const url = `${path}/follow?pod=${encodeURIComponent(entered)}`
  const { statusCode, body } = await pod.inject({ url, remoteAddress })
  const link = /class="button" href="([^"]+)"/.exec(body)?.[1]?.replaceAll('&#38;', '&')
  return { status: statusCode, link, body }
}

/** The host of a pod whose WebFinger answers as given. */
function addPod(answer: (response: ServerResponse) => unknown): string {
  const host = `r${visitors}.example`
  fakePods.script(`${host}/.well-known/webfinger`, (_request, response) => void answer(response))
  return host
}
const documentWith = (template: unknown) => (response: ServerResponse) =>
  response.end(
    JSON.stringify({
      subject: 'acct:someone@elsewhere.example',
      links: [
        { rel: 'self', href: 'https://x.example/users/carol' },
        { rel: 'http://ostatus.org/schema/1.0/subscribe', template },
      ],
    }),
  )

describe('the form that follows a person from another pod', () => {
  it('is on the page of a local person, whose policy allows this target only', async () => {
    const { headers, body } = await pod.inject(path)

    expect(body).toContain(`action="${path}/follow"`)
    expect(headers['content-security-policy']).toContain("form-action 'self'")
  })

  it.each([
    ['R.example', 'https://r.example/people?q=ann%40p.example'],
    ['https://r.example/some/page', 'https://r.example/people?q=ann%40p.example'],
    ['f.example', 'https://f.example/contact/follow?url=ann%40p.example'],
    ['h.example', 'https://h.example/follow?f=&url=ann%40p.example'],
  ])('leads from %s to %s without a request', async (entered, url) => {
    for (const [host, software] of [
      ['f.example', 'friendica'],
      ['h.example', 'Hubzilla'],
    ] as const)
      await RemotePod.query(pod.pod.db)
        .insert({ host, port: 443, ssl: true, software })
        .onConflict(['host', 'port'])
        .ignore()
    const before = fakePods.requests.length

    expect(await follow(entered)).toMatchObject({ status: 200, link: url })
    expect(fakePods.requests.slice(before)).toEqual([])
  })

  it.each([
    '',
    'p.example',
    'ann@p.example',
    'nothing',
    'javascript:alert(1)',
    'a b.example',
    '"><script>',
    `${'a'.repeat(400)}.example`,
  ])('shows the form again for %j', async (entered) => {
    const { status, body } = await follow(entered)

    expect(status).toBe(422)
    expect(body).toContain('aria-invalid="true"')
    expect(body).not.toContain('<script')
  })

  it('is no page of a person of another pod', async () => {
    const quin = await addRemotePerson(pod.pod, 'quin@q.example')

    expect((await pod.inject(`/people/${quin.guid}/follow?pod=r.example`)).statusCode).toBe(404)
  })
})

describe('the address of a visitor', () => {
  it.each([
    [
      'https://social.example/authorize_interaction?uri={uri}',
      'https://social.example/authorize_interaction?uri=ann%40p.example',
    ],
    ['https://social.example:8443/{uri}/{uri}', 'https://social.example:8443/ann%40p.example/ann%40p.example'],
  ])('leads to the page %s that WebFinger names', async (template, url) => {
    const host = addPod(documentWith(template))

    expect(await follow(`@Carol@${host}`)).toMatchObject({ status: 200, link: url })
    expect(fakePods.requests.at(-1)).toBe(`${host}/.well-known/webfinger?resource=acct:carol@${host}`)
  })

  it.each([
    ['no page', documentWith(undefined)],
    ['a page without a place for the address', documentWith('https://social.example/follow')],
    ['a page in another scheme', documentWith('javascript:alert({uri})')],
    ['a page with a password', documentWith('https://carol:secret@social.example/{uri}')],
    ['a host made of the address', documentWith('https://{uri}.example/')],
    ['a page with a long address', documentWith(`https://social.example/${'a'.repeat(2_048)}?{uri}`)],
    ['no text', documentWith(7)],
    ['no JSON', (response: ServerResponse) => response.end('<html>')],
    ['a fault', (response: ServerResponse) => response.writeHead(500).end()],
    ['a cut connection', (response: ServerResponse) => response.destroy()],
    ['too much', (response: ServerResponse) => response.end(Buffer.alloc(REMOTE_LIMITS.discoveryBytes + 1, ' '))],
  ])('leads to the page of diaspora* if its pod answers with %s', async (_what, answer) => {
    const host = addPod(answer)

    expect(await follow(`carol@${host}`)).toMatchObject({
      status: 200,
      link: `https://${host}/people?q=ann%40p.example`,
    })
  })

  it('causes one request a minute if its pod fails', async () => {
    const host = addPod((response) => response.writeHead(500).end())
    const before = fakePods.requests.length

    await follow(`carol@${host}`)
    await follow(`carol@${host}`)

    expect(fakePods.requests.slice(before)).toHaveLength(1)
  })

  it('causes no request to a blocked pod', async () => {
    const host = addPod(documentWith('https://social.example/{uri}'))
    const rule = { domain: host, subdomains: false, state: 'blocked' } as const
    await setPodRule(pod.pod, COMMAND_ACTOR, rule, { reason: 'Spam', confirm: host })
    const before = fakePods.requests.length

    expect((await follow(`carol@${host}`)).link).toBe(`https://${host}/people?q=ann%40p.example`)
    expect(fakePods.requests.slice(before)).toEqual([])
  })

  it('is limited like other lookups without an account', async () => {
    const host = addPod(documentWith('https://social.example/{uri}'))
    const statuses = new Set<number>()
    for (let time = 0; time < ANONYMOUS_LOOKUP_LIMITS.perMinuteOfAddress; time += 1) {
      statuses.add((await follow(`carol@${host}`)).status)
    }

    expect(statuses).toEqual(new Set([200]))
    expect((await follow(`carol@${host}`)).status).toBe(429)
    expect((await follow(host)).status).toBe(200)
  })
})
