import { readFile } from 'node:fs/promises'
import { Ajv } from 'ajv'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readConfig } from '../../../src/config/config.js'
import { createComment } from '../../../src/domain/interactions/comments.js'
import { publishPost } from '../../../src/domain/posts/publish-post.js'
import { createReshare } from '../../../src/domain/posts/reshares.js'
import { User } from '../../../src/persistence/models/user.js'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import { addPost } from '../../support/databases/rows.js'
import { viewerOf } from '../../support/people/local-users.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { buildPod, type TestPod } from '../../support/pods/build-pod.js'

const count = { type: 'integer', minimum: 0 }
const text = { type: 'string' }

/** The rules that the published schemas of both versions make; `more` is what 2.1 has beyond 2.0. */
function schemaOf(version: string, more: object) {
  const strict = { type: 'object', additionalProperties: false }
  return {
    ...strict,
    required: ['version', 'software', 'protocols', 'services', 'openRegistrations', 'usage', 'metadata'],
    properties: {
      version: { const: version },
      software: {
        ...strict,
        required: ['name', 'version'],
        properties: { name: { type: 'string', pattern: '^[a-z0-9-]+$' }, version: text, ...more },
      },
      protocols: { type: 'array', minItems: 1, items: { enum: ['activitypub', 'diaspora', 'dfrn', 'ostatus', 'zot'] } },
      services: {
        ...strict,
        required: ['inbound', 'outbound'],
        properties: { inbound: { type: 'array', items: text }, outbound: { type: 'array', items: text } },
      },
      openRegistrations: { type: 'boolean' },
      usage: {
        ...strict,
        required: ['users'],
        properties: {
          users: { ...strict, properties: { total: count, activeHalfyear: count, activeMonth: count } },
          localPosts: count,
          localComments: count,
        },
      },
      metadata: { type: 'object' },
    },
  }
}

const schemas = {
  '2.0': schemaOf('2.0', {}),
  '2.1': schemaOf('2.1', { repository: text, homepage: text }),
} as const

function faultsIn(version: keyof typeof schemas, document: unknown) {
  const validate = new Ajv({ allErrors: true, strict: false }).compile(schemas[version])
  validate(document)
  return validate.errors ?? []
}

describe('NodeInfo', () => {
  let pod: TestPod
  beforeAll(async () => {
    pod = await buildPod({ environment: { POD_URL: 'https://p.example', POD_NAME: 'The red pod' } })
  })
  afterAll(() => pod.close())

  it('is found at the well-known path, from any origin', async () => {
    const response = await pod.inject({ url: '/.well-known/nodeinfo', headers: { host: 'evil.example' } })

    expect(response.statusCode).toBe(200)
    expect(response.headers['access-control-allow-origin']).toBe('*')
    expect(response.json()).toEqual({
      links: ['2.0', '2.1'].map((version) => ({
        rel: `http://nodeinfo.diaspora.software/ns/schema/${version}`,
        href: `https://p.example/nodeinfo/${version}`,
      })),
    })
  })

  it.each(['2.0', '2.1'] as const)('describes this pod in version %s, and reveals nothing more', async (version) => {
    const { version: release } = JSON.parse(await readFile(new URL('../../../package.json', import.meta.url), 'utf8'))

    const response = await pod.inject(`/nodeinfo/${version}`)

    expect(response.statusCode).toBe(200)
    expect(response.headers['content-type']).toBe(
      `application/json; profile=http://nodeinfo.diaspora.software/ns/schema/${version}#; charset=utf-8`,
    )
    expect(response.headers['access-control-allow-origin']).toBe('*')
    expect(faultsIn(version, response.json())).toEqual([])
    expect(response.json()).toMatchObject({
      software: { version: release },
      protocols: ['diaspora'],
      openRegistrations: false,
      metadata: { nodeName: 'The red pod' },
    })
    expect(response.json().usage).toEqual({ users: {} })
  })

  it('has schemas in this test that would notice a member too many, a wrong type and a missing one', async () => {
    const document = (await pod.inject('/nodeinfo/2.0')).json()

    expect(faultsIn('2.0', { ...document, extra: 1 })).not.toEqual([])
    expect(faultsIn('2.0', { ...document, usage: { ...document.usage, localPosts: -1 } })).not.toEqual([])
    expect(faultsIn('2.0', { ...document, software: { name: 'A Pod', version: '1' } })).not.toEqual([])
    const { metadata: _, ...less } = document
    expect(faultsIn('2.0', less)).not.toEqual([])
  })

  it('is a version that clients accept', async () => {
    const { software } = (await pod.inject('/nodeinfo/2.1')).json()

    expect(Number(software.version.split('.')[0])).toBeGreaterThanOrEqual(1)
  })

  it('names the source code of SOURCE_URL, which is at the foot of each page too', async () => {
    const environment = { SOURCE_URL: 'https://code.example/pod?at=1&x=2' }
    await using other = await buildPod({ environment })
    const softwareIn = async (version: string) => (await other.inject(`/nodeinfo/${version}`)).json().software

    expect(await softwareIn('2.1')).toMatchObject({ repository: environment.SOURCE_URL })
    expect(await softwareIn('2.0')).not.toHaveProperty('repository')
    const german = { 'accept-language': 'de' }
    for (const [url, headers, text] of [
      ['/', {}, 'Source code'],
      ['/users/sign_in', german, 'Quelltext'],
      ['/posts/missing', {}, 'Source code'],
    ] as const) {
      const { body } = await other.inject({ url, headers: { accept: 'text/html', ...headers } })
      expect(body).toContain(`<a href="https://code.example/pod?at=1&#38;x=2">${text}</a></footer>\n</body>`)
    }
    expect((await pod.inject('/')).body).not.toContain('Source code')
    expect(() => readConfig({ SOURCE_URL: 'javascript:alert(1)' })).toThrow('SOURCE_URL')
  })

  it('has no usage without STATISTICS=on', async () => {
    expect(await statementsDuring(() => pod.inject('/nodeinfo/2.1'))).toBe(0)
  })

  it.each(['1.0', '1.1', '2.2', '3.0', 'x'])('answers 404 for version %s', async (version) => {
    expect((await pod.inject(`/nodeinfo/${version}`)).statusCode).toBe(404)
  })

  it('is served over HTTP', async () => {
    expect((await pod.inject('/')).statusCode).toBe(200)
  })

  it('has an empty host-meta document for older pods', async () => {
    const response = await pod.inject('/.well-known/host-meta')

    expect(response.statusCode).toBe(200)
    expect(response.headers['content-type']).toBe('application/xrd+xml; charset=utf-8')
    expect(response.body).toContain('<XRD xmlns="http://docs.oasis-open.org/ns/xri/xrd-1.0"/>')
  })
})

describe('NodeInfo with STATISTICS=on', () => {
  it('counts people, posts and comments of this pod, and caches the result', async () => {
    await using pod = await buildPod({ environment: { STATISTICS: 'on', REGISTRATIONS: 'open' } })
    const { ann, ben, old } = await pod.people('ann', 'ben', 'old')
    const viewer = await viewerOf(pod.pod, ann)
    const post = await publishPost(pod.pod, viewer, { text: 'One', public: true })
    await createReshare(pod.pod, await viewerOf(pod.pod, ben), post.guid)
    await createComment(pod.pod, viewer, { postGuid: post.guid, text: 'Two' })
    await addPost(pod.pod, await addRemotePerson(pod.pod, 'quin@q.example'))
    const signedIn = (username: string, days: number) =>
      User.query(pod.pod.db)
        .patch({ lastSignInAt: new Date(Date.now() - days * 86_400_000) })
        .where({ username })
    await signedIn(ann.account.username, 1)
    await signedIn(ben.account.username, 100)
    await signedIn(old.account.username, 200)

    const documents = await Promise.all(['2.0', '2.1'].map((version) => pod.inject(`/nodeinfo/${version}`)))

    for (const [index, version] of (['2.0', '2.1'] as const).entries()) {
      const document = documents[index]?.json()
      expect(faultsIn(version, document)).toEqual([])
      expect(document).toMatchObject({
        openRegistrations: true,
        usage: { users: { total: 3, activeHalfyear: 2, activeMonth: 1 }, localPosts: 1, localComments: 1 },
      })
    }
    expect(await statementsDuring(() => pod.inject('/nodeinfo/2.1'))).toBe(0)
  })
})
