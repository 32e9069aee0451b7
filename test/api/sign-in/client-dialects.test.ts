import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { setClientDialect } from '../../../src/domain/accounts/clients.js'
import { isScope } from '../../../src/domain/accounts/scopes.js'
import { mintToken } from '../../../src/domain/accounts/tokens.js'
import { createComment } from '../../../src/domain/interactions/comments.js'
import type { ClientApiDialect } from '../../../src/persistence/models/client.js'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import { publishRows } from '../../support/databases/publish-rows.js'
import { openEventStream } from '../../support/http/event-stream.js'
import {
  approveClient,
  CALLBACK,
  codeIn,
  postForm,
  register,
  registerTestClient,
} from '../../support/http/oidc-client.js'
import { type SampleApiPod, startSampleApiPod } from '../../support/pods/sample-api-pod.js'

let api: SampleApiPod
beforeAll(async () => {
  api = await startSampleApiPod()
})
afterAll(() => api.close())

const SCOPES = 'openid public:read contacts:read private:read interactions conversations notifications'

/** A client that alice has authorized; registers with this dialect, or without one. */
async function clientOfAlice(dialect?: ClientApiDialect) {
  const client = await registerTestClient(api.app, dialect && { client_api_dialect: dialect })
  const code = codeIn(await approveClient(api.app, client, 'alice', { parameters: { scope: SCOPES } }))
  const granted = await client.token({ grant_type: 'authorization_code', code, redirect_uri: CALLBACK })
  const token: string = granted.json().access_token
  const send = (method: 'GET' | 'POST' | 'PATCH', path: string, body?: object) =>
    api.call({ method, path, token, ...(body && { body }) })
  return { id: client.id, token, send }
}

type Client = Awaited<ReturnType<typeof clientOfAlice>>

async function readEveryPlace({ send }: Pick<Client, 'send'>) {
  await createComment(api.pod, api.bob.viewer, { postGuid: api.alicePost, text: 'Well said' })
  const started = await send('POST', '/conversations', { subject: 'Tea', body: 'x', recipients: [api.bob.guid] })
  const marked = await send('PATCH', `/conversations/${started.body.guid}`, { read: false })
  const comment = await send('POST', `/posts/${api.bobPost}/comments`, { body: 'Hello' })
  const [notification] = (await send('GET', '/notifications?type=commented_on_post')).body
  return {
    startedRead: started.body.read,
    marked: Array.isArray(marked.body) ? 'list' : marked.body.guid === started.body.guid && 'object',
    commentKeys: ['interactions', 'reported'].filter((key) => key in comment.body),
    type: notification.type,
  }
}

const IN_DIALECT = {
  standard: { startedRead: undefined, marked: 'list', commentKeys: [], type: 'commented_on_post' },
  diaspora: {
    startedRead: true,
    marked: 'object',
    commentKeys: ['interactions', 'reported'],
    type: 'comment_on_post',
  },
} as const

describe('the dialect that a client names in its registration', () => {
  it.each(['standard', 'diaspora', undefined] as const)('%s: is in the answer', async (dialect) => {
    const answer = await register(api.app, dialect === undefined ? {} : { client_api_dialect: dialect })

    expect(answer.statusCode).toBe(201)
    expect(answer.json().client_api_dialect).toBe(dialect ?? null)
  })

  it('is also read from a form', async () => {
    const answer = await postForm(api.app, '/api/openid_connect/clients', {
      'redirect_uris[]': CALLBACK,
      client_api_dialect: 'diaspora',
    })

    expect(answer.json().client_api_dialect).toBe('diaspora')
  })

  it.each(['klingon', 'Diaspora', '', 5, [['diaspora']]])('%j is refused', async (dialect) => {
    const answer = await register(api.app, { client_api_dialect: dialect })

    expect([answer.statusCode, answer.json().error]).toEqual([400, 'invalid_client_metadata'])
    expect(answer.json().error_description).toContain('client_api_dialect')
  })

  it.each(['standard', 'diaspora'] as const)('%s: decides the shape of the answers', async (dialect) => {
    expect(await readEveryPlace(await clientOfAlice(dialect))).toEqual(IN_DIALECT[dialect])
  })

  it('costs no statement', async () => {
    const plain = await clientOfAlice()
    const other = await clientOfAlice('diaspora')
    const read = (client: Client) => statementsDuring(() => client.send('GET', '/notifications'))

    expect(await read(other)).toBe(await read(plain))
  })
})

describe('without one', () => {
  it('the dialect is that of the setting', async () => {
    expect(await readEveryPlace(await clientOfAlice())).toEqual(IN_DIALECT.standard)
  })

  it('a client that names standard is not changed by the setting', async () => {
    await using other = await startSampleApiPod({ environment: { CLIENT_API_DIALECT: 'diaspora' } })
    const client = await registerTestClient(other.app, { client_api_dialect: 'standard' })
    const code = codeIn(await approveClient(other.app, client, 'alice', { parameters: { scope: SCOPES } }))
    const granted = await client.token({ grant_type: 'authorization_code', code, redirect_uri: CALLBACK })

    const body = { subject: 'Tea', body: 'x', recipients: [other.bob.guid] }
    const named = await other.call({ method: 'POST', path: '/conversations', token: granted.json().access_token, body })
    const minted = await other.alice.post('/conversations', body)

    expect([named.body.read, minted.body.read]).toEqual([undefined, true])
  })
})

describe('the dialect of a token of the operator', () => {
  it.each(['standard', 'diaspora'] as const)('%s: decides the shape of the answers', async (apiDialect) => {
    const scopes = SCOPES.split(' ').filter(isScope)
    const { accessToken } = await mintToken(api.pod, 'alice', { scopes, lifetime: 60, apiDialect })
    const send: Client['send'] = (method, path, body) =>
      api.call({ method, path, token: accessToken, ...(body && { body }) })

    expect(await readEveryPlace({ send })).toEqual(IN_DIALECT[apiDialect])
  })
})

describe('a change of the dialect of a client', () => {
  it('has an effect from the next request of the client', async () => {
    const client = await clientOfAlice()
    const typeNow = async () => (await client.send('GET', '/notifications?type=commented_on_post')).body[0].type
    await createComment(api.pod, api.bob.viewer, { postGuid: api.alicePost, text: 'One' })
    expect(await typeNow()).toBe('commented_on_post')

    await setClientDialect(api.pod, client.id, 'diaspora')
    expect(await typeNow()).toBe('comment_on_post')

    await setClientDialect(api.pod, client.id, null)
    expect(await typeNow()).toBe('commented_on_post')
  })

  it('has an effect on the next event of an open stream', async () => {
    const client = await clientOfAlice()
    await api.app.listen({ port: 0, host: '127.0.0.1' })
    const base = `http://127.0.0.1:${(api.app.server.address() as AddressInfo).port}` // it listens on a port
    await using stream = await openEventStream({ base, token: client.token, query: 'types=notification' })
    await stream.placed()
    await createComment(api.pod, api.bob.viewer, { postGuid: api.alicePost, text: 'Two' })
    const { id } = await api.pod
      .db('notifications')
      .where({ userId: api.alice.viewer.userId, type: 'commented_on_post' })
      .first('id')

    const types: string[] = []
    for (const dialect of ['diaspora', null] as const) {
      await setClientDialect(api.pod, client.id, dialect)
      await publishRows(api.pod.db, { notifications: [id] })
      types.push(...(await stream.take(1)).map(({ data }) => data.type))
    }

    expect(types).toEqual(['comment_on_post', 'commented_on_post'])
  })
})
