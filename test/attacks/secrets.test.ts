import { readdirSync, readFileSync } from 'node:fs'
import type { FastifyInstance } from 'fastify'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newGuid } from '../../src/domain/new-guid.js'
import { Person } from '../../src/persistence/models/person.js'
import type { ConversationEntity } from '../../src/protocol/entities/conversations.js'
import { openBrowser } from '../support/browser/scriptless-browser.js'
import { commentBy, postBy } from '../support/federation/entities.js'
import { encryptEnvelopeFor, envelopeOf } from '../support/federation/envelopes.js'
import { type FakePerson, type FakePods, startFakePods } from '../support/federation/fake-pods.js'
import { approveClient, CALLBACK, codeIn, POD, register, registerTestClient } from '../support/http/oidc-client.js'
import type { TestPerson } from '../support/people/local-users.js'
import { type AttackedPod, startAttackedPod } from './attacked-pod.js'

const SECRET_KEY = 'the key that seals keys, which nobody may read'
const WRITTEN = 'the private word that nobody may read'

/** Patterns that an attacker with access to a log would search for. */
const treasures = new Map<string, string>()
let fakePods: FakePods
let pod: AttackedPod
let app: FastifyInstance
let ann: TestPerson
let ben: TestPerson
let quin: FakePerson
beforeAll(async () => {
  fakePods = await startFakePods()
  pod = await startAttackedPod({ fakePods, environment: { SECRET_KEY, REGISTRATIONS: 'open' } })
  ;({ app } = pod)
  ;({ ann, ben } = await pod.people('ann', 'ben'))
  quin = fakePods.person('quin@q.example')
  await pod.addRemotePerson(quin)
  treasures.set('the secret key', SECRET_KEY)
  treasures.set('a private text', WRITTEN)
  treasures.set('a token of the operator', ann.token)
  treasures.set('a password', 'the password of ann')
  const folder = new URL('../fixtures/keys/', import.meta.url)
  for (const file of readdirSync(folder).filter((name) => name.includes('private'))) {
    const lines = readFileSync(new URL(file, folder), 'utf8')
      .split('\n')
      .filter((line) => line.length > 40)
    for (const [index, line] of lines.entries()) treasures.set(`line ${index} of ${file}`, line)
  }
})
afterAll(async () => {
  await pod.close()
  await fakePods.close()
})

/** Everything that has been said so far, with what JSON writes in other ways written plainly. */
function everythingSaid(): string {
  return pod.recordedLog.lines.join('').replaceAll('\\n', '\n').replaceAll('\\"', '"').replaceAll('\\/', '/')
}

const privately = async (to: TestPerson, body: string) => {
  const { publicKey } = await Person.query(pod.db).findOne({ guid: to.account.guid }).throwIfNotFound()
  return { path: `/receive/users/${to.account.guid}`, body: encryptEnvelopeFor(publicKey, body) }
}

describe('S75: nothing that must not be read is in the log after', () => {
  it('signing in, registering and getting tokens, well and badly', async () => {
    const client = await registerTestClient(app)
    const browser = openBrowser(app, POD)
    const url = await approveClient(app, client, 'ann', {
      parameters: { scope: 'openid profile', state: 'the state of a client' },
      browser,
    })
    const code = codeIn(url)
    const tokens = (await client.token({ grant_type: 'authorization_code', code, redirect_uri: CALLBACK })).json()
    await client.token({ grant_type: 'authorization_code', code, redirect_uri: CALLBACK })
    await client.token({ grant_type: 'refresh_token', refresh_token: tokens.refresh_token })
    await register(app, { redirect_uris: ['javascript:alert(1)'], client_name: WRITTEN })
    const wrong = openBrowser(app, POD)
    await wrong.visit('/users/sign_in')
    await wrong.submit({ username: 'ann', password: 'a wrong password that is somebody else’s' })

    for (const [name, secret] of Object.entries({
      code,
      secret: client.secret,
      access: tokens.access_token,
      refresh: tokens.refresh_token,
      id: tokens.id_token,
      wrong: 'a wrong password that is',
      state: 'the state of a client',
      ...Object.fromEntries(browser.cookies),
    })) {
      expect([name, secret?.length]).not.toEqual([name, undefined])
      treasures.set(name, String(secret))
    }
    expectNothing()
  })

  it('calls of the API with tokens in every place, and with bodies that break', async () => {
    const bearer = { authorization: `Bearer ${ann.token}` }
    const root = postBy(quin)
    await pod.send(envelopeOf(quin, root))
    const comments = `/api/v1/posts/${root.guid}/comments`
    await app.inject({ url: `/api/v1/user?access_token=${ann.token}` })
    await app.inject({ url: '/api/v1/user', headers: { ...bearer, cookie: `session=${WRITTEN}` } })
    await app.inject({ method: 'POST', url: comments, headers: bearer, payload: { body: WRITTEN } })
    await app.inject({ method: 'POST', url: comments, headers: bearer, payload: { body: `${WRITTEN}\0` } })
    await app.inject({
      method: 'POST',
      url: comments,
      headers: { ...bearer, 'content-type': 'application/json' },
      payload: `{"body": "${WRITTEN}`,
    })
    await app.inject({
      method: 'PATCH',
      url: '/api/v1/user',
      headers: bearer,
      payload: { bio: WRITTEN, birthday: WRITTEN },
    })
    await app.inject({ url: `/people?q=${encodeURIComponent(WRITTEN)}` })

    expectNothing()
  })

  it('private messages: stored, invalid and undecryptable', async () => {
    const conversation: ConversationEntity = {
      type: 'conversation',
      author: quin.address,
      guid: newGuid(),
      subject: WRITTEN,
      created_at: new Date(),
      participants: [quin.address, ben.account.address],
      messages: [],
    }
    const post = postBy(quin, { public: false, text: WRITTEN })
    await pod.send(
      await privately(ben, envelopeOf(quin, conversation)),
      await privately(ben, envelopeOf(quin, post)),
      await privately(ann, envelopeOf(quin, conversation)),
      await privately(ben, envelopeOf(quin, { ...post, author: 'mallory@m.example' })),
      await privately(ben, `<status_message>${WRITTEN}</status_message>`),
      envelopeOf(quin, post),
      envelopeOf(quin, commentBy(quin, { guid: newGuid() }, { text: WRITTEN })),
      WRITTEN,
    )

    expect(pod.recordedLog.entries().filter(({ msg }) => msg === 'inbound message rejected').length).toBeGreaterThan(3)
    expectNothing()
  })

  it('a database that refuses, with its statement and its values', async () => {
    const line = pod.recordedLog.lines.length
    // Without a guid and an author, PostgreSQL reports the whole row.
    const failing = pod.db('posts').insert({ type: 'StatusMessage', public: true, text: WRITTEN })
    const error: unknown = await failing.then(
      () => undefined,
      (reason: unknown) => reason,
    )
    pod.log.error(
      { err: error, password: 'the password of ann', token: ann.token, nested: { access_token: ann.token } },
      'this went wrong',
    )

    expect(pod.recordedLog.lines.length).toBe(line + 1)
    expect(JSON.stringify(error)).toContain(WRITTEN)
    expectNothing()
  })

  it('everything above was logged at the most verbose level', () => {
    expect(pod.recordedLog.lines.length).toBeGreaterThan(20)
    expect(treasures.size).toBeGreaterThan(20)
    treasures.set('a canary', 'a text that anybody may read')
    pod.log.info({ canary: 'a text that anybody may read' }, 'a log that is looked through')
    expect(() => expectNothing()).toThrow()
    treasures.delete('a canary')
  })

  function expectNothing(): void {
    const said = everythingSaid()
    const found = [...treasures].filter(([, secret]) => said.includes(secret)).map(([name]) => name)
    expect(found).toEqual([])
    expect(said).not.toMatch(/PRIVATE KEY|Bearer [\w-]{20}|"(authorization|cookie)":"(?!\[secret\])/i)
  }
})

it('S75: nor in metrics, in the queue or in an answer of the operator', async () => {
  await using waiting = await startAttackedPod({ fakePods, queues: [], environment: { SECRET_KEY } })
  const { cem } = await waiting.people('cem')
  await cem.post(`/api/v1/posts/${newGuid()}/comments`, { body: WRITTEN })
  const { publicKey } = await Person.query(waiting.db).findOne({ guid: cem.account.guid }).throwIfNotFound()
  await waiting.post(
    `/receive/users/${cem.account.guid}`,
    encryptEnvelopeFor(publicKey, envelopeOf(quin, postBy(quin, { public: false, text: WRITTEN }))),
  )

  const tables: readonly string[] = await waiting.db('pg_tables').where({ schemaname: 'bullmq' }).pluck('tablename')
  const rows = await Promise.all(
    tables.map((table) =>
      waiting.db.raw(`select coalesce(string_agg(row::text, ''), '') as text from bullmq."${table}" as row`),
    ),
  )
  const queue = rows.map((result) => result.rows[0].text).join('')

  expect(queue).toContain('encrypted_magic_envelope')
  for (const secret of [WRITTEN, SECRET_KEY, cem.token, 'PRIVATE KEY']) expect(queue).not.toContain(secret)
})
