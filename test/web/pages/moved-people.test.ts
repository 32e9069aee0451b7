import { createPublicKey } from 'node:crypto'
import { text } from 'node:stream/consumers'
import { Registry } from 'prom-client'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { findNewAccountRefusals } from '../../../src/domain/accounts/accounts.js'
import { loadPrivateKey } from '../../../src/domain/accounts/private-keys.js'
import { requestExport } from '../../../src/domain/archives/exports.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { INBOUND_LIMITS } from '../../../src/federation/inbound/limits.js'
import { registerReceiveMetrics } from '../../../src/federation/inbound/receive-metrics.js'
import { forwardEnvelope } from '../../../src/federation/outbound/forward-envelope.js'
import type { AccountMigrationEntity } from '../../../src/protocol/entities/people.js'
import { decryptEnvelope } from '../../../src/protocol/envelopes/encrypted-envelope.js'
import { verifyEnvelope } from '../../../src/protocol/envelopes/verify-envelope.js'
import { signMigration } from '../../../src/protocol/signatures/migration-signature.js'
import { prune } from '../../../workers/handlers/maintenance.js'
import { openBrowser } from '../../support/browser/scriptless-browser.js'
import { addPost } from '../../support/databases/rows.js'
import { commentBy, likeBy, postBy, profileOf } from '../../support/federation/entities.js'
import { type FakePerson, type FakePods, startFakePods } from '../../support/federation/fake-pods.js'
import { allStored, privateMessage, publicMessage, receive } from '../../support/federation/inbound-messages.js'
import { confirmMailbox, runMails } from '../../support/mail/mail-runs.js'
import { startSmtpServer, type TestSmtpServer } from '../../support/mail/smtp-server.js'
import { addLocalUser, type LocalUser } from '../../support/people/local-users.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { type ApiPerson, type ApiPod, startApiPod } from '../../support/pods/api-pod.js'

let fakePods: FakePods
let api: ApiPod
let smtp: TestSmtpServer
let bob: ApiPerson
let ann: LocalUser
let quin: FakePerson
beforeAll(async () => {
  fakePods = await startFakePods()
  smtp = await startSmtpServer()
  api = await startApiPod({ fakePods, environment: { SMTP_URL: smtp.url, MAIL_FROM: 'pod@pod.example' } })
  ;({ bob } = await api.people('bob'))
  ann = await addLocalUser(api.pod, 'ann')
  quin = fakePods.person('quin@q.example')
  await addRemotePerson(api.pod, quin.address, quin)
  expect(await receive(api.pod, await moveOf(ann, quin))).toEqual(allStored)
})
afterAll(async () => {
  await api.close()
  await fakePods.close()
  await smtp.close()
})

async function moveOf(from: Pick<LocalUser, 'id' | 'address'>, to: FakePerson) {
  const privateKey = await loadPrivateKey(api.pod, from.id)
  const entity: AccountMigrationEntity = {
    type: 'account_migration',
    author: from.address,
    profile: profileOf(to, { first_name: 'Moved', public: false }),
    signature: signMigration({ from: from.address, to: to.address }, to.privateKey),
    old_identity: from.address,
    remote_photo_path: undefined,
  }
  return publicMessage({ ...to, address: from.address, privateKey }, entity)
}

const get = (url: string, accept = 'text/html') => api.app.inject({ url, headers: { accept } })

it('WebFinger still answers for the old address, with a link to the signed message of the move', async () => {
  const answer = await get(`/.well-known/webfinger?resource=acct:${ann.address}`)

  expect(answer.statusCode).toBe(200)
  const { subject, links } = answer.json()
  expect(subject).toBe(`acct:${ann.address}`)
  const successor = links.find(({ rel }: { rel: string }) => rel === 'successor-version')
  expect(successor).toEqual({
    rel: 'successor-version',
    type: 'application/magic-envelope+xml',
    href: `https://pod.example/fetch/account_migration/${ann.guid}`,
  })
  const envelope = await get(new URL(successor.href).pathname)
  expect(envelope.headers['content-type']).toMatch(/^application\/magic-envelope\+xml/)
  const stored = await api.pod.db('account_migrations').where({ oldPersonId: ann.id }).first()
  expect(envelope.body).toBe(stored.envelope)
  expect((await get(`/fetch/account_migration/${bob.guid}`)).statusCode).toBe(404)
})

it('the hCard of the old guid has the key, so that old messages can be verified, and nothing about the person', async () => {
  const { statusCode, body } = await get(`/hcard/users/${ann.guid}`)

  expect(statusCode).toBe(200)
  expect(body).toContain('BEGIN PUBLIC KEY')
  expect(body).toContain('<span class="searchable">false</span>')
  expect(body).not.toContain('Moved')
})

it('pages lead to the new pod, and name the new address; programs get a 410', async () => {
  for (const path of [`/people/${ann.guid}`, '/u/ann', '/public/ann']) {
    const page = await get(path)
    expect([page.statusCode, page.headers.location]).toEqual([301, `https://q.example/people/${quin.guid}`])
    expect(page.body).toContain(quin.address)
    expect((await get(path, 'application/json')).statusCode).toBe(410)
  }
  const feed = await get('/public/ann.atom', 'application/atom+xml')
  expect([feed.statusCode, feed.headers.location]).toEqual([301, 'https://q.example/public/quin.atom'])
  const stream = await get(`/people/${ann.guid}/stream`, 'application/json')
  expect([stream.statusCode, stream.json()]).toEqual([200, []])
})

it('the API names the new identity', async () => {
  const answer = await bob.get(`/users/${ann.guid}`)

  expect([answer.status, answer.body]).toEqual([
    410,
    expect.objectContaining({ reason: 'moved', moved_to: { guid: quin.guid, diaspora_id: quin.address } }),
  ])
})

it('the old address and the old guid lead clients to the newest identity', async () => {
  const { frank } = await api.people('frank')
  const rita = { ...fakePods.person('rita@r.example') }
  await addRemotePerson(api.pod, rita.address, rita)
  const sam = { ...fakePods.person('sam@s.example') }
  await addRemotePerson(api.pod, sam.address, sam)
  const entity = {
    ...{ type: 'account_migration' as const, author: rita.address, old_identity: rita.address },
    profile: profileOf(sam, { first_name: 'Sam' }),
    signature: signMigration({ from: rita.address, to: sam.address }, sam.privateKey),
    remote_photo_path: undefined,
  }
  expect(await receive(api.pod, publicMessage(rita, entity))).toEqual(allStored)

  for (const q of [rita.address, `https://r.example/people/${rita.guid}`]) {
    const { statusCode, headers } = await get(`/people?q=${encodeURIComponent(q)}`)
    expect([statusCode, headers.location]).toEqual([302, `https://pod.example/people/${sam.guid}`])
  }
  const aspect = await firstAspect(frank)
  expect((await frank.post(`/aspects/${aspect}/contacts`, { person_guid: rita.guid })).status).toBe(204)
  const { body: contacts } = await frank.get(`/aspects/${aspect}/contacts`)
  expect(contacts.map(({ guid }: { guid: string }) => guid)).toEqual([sam.guid])
  await api.pod.db('contacts').where({ userId: frank.viewer.userId }).update({ sharing: true })
  const message = { subject: 'Hi', body: 'Hello', recipients: [rita.guid] }
  const { status, body } = await frank.post('/conversations', message)
  expect([status, body.participants.map(({ guid }: { guid: string }) => guid)]).toEqual([201, [frank.guid, sam.guid]])
  const both = { ...message, recipients: [rita.guid, sam.guid] }
  expect((await frank.post('/conversations', both)).status).toBe(422)
  expect((await frank.delete(`/aspects/${aspect}/contacts/${rita.guid}`)).status).toBe(204)
})

it('addresses of posts lead to the new pod', async () => {
  const { dave } = await api.people('dave')
  const { body: post } = await dave.post('/posts', { body: 'Hello', public: true })
  const { body: hidden } = await dave.post('/posts', {
    body: 'Hello',
    public: false,
    aspects: [await firstAspect(dave)],
  })
  await receive(api.pod, await moveOf({ id: dave.viewer.personId, address: dave.address }, quin))

  for (const path of [`/fetch/post/${post.guid}`, `/posts/${post.guid}`]) {
    const { statusCode, headers } = await get(path)
    expect([path, statusCode, headers.location]).toEqual([path, 302, `https://q.example${path}`])
  }
  for (const path of [`/fetch/post/${hidden.guid}`, `/posts/${hidden.guid}`])
    expect((await get(path)).statusCode).toBe(404)
})

async function firstAspect(person: ApiPerson): Promise<number> {
  const [{ id }] = (await person.get('/aspects')).body
  return id
}

it('private messages for the old account are accepted', async () => {
  const payload = '{"aes_key":"x","encrypted_magic_envelope":"x"}'
  const { statusCode } = await api.app.inject({ method: 'POST', url: `/receive/users/${ann.guid}`, payload })
  expect(statusCode).toBe(202)
})

it('a late comment is forwarded to the new pod unchanged, and its author gets the message of the move', async () => {
  const post = await addPost(api.pod, (await api.pod.db('people').where({ address: quin.address }).first()) as never)
  const carl = fakePods.person('carl@c.example')
  const author = await addRemotePerson(api.pod, carl.address, carl)
  const comment = commentBy(carl, post)
  const message = publicMessage(carl, comment)
  await receive(api.pod, message)

  const [forwarded, ...more] = await api.pod.db('outbox').where({ name: 'forward-envelope' }).pluck('data')
  expect(more).toEqual([])
  expect(forwarded.envelope).toBe(message.envelope)
  expect(await api.pod.db('pods').where({ id: forwarded.podId }).first()).toMatchObject({ host: 'q.example' })
  const told = await api.pod.db('deliveries').join('pods', 'pods.id', 'podId').pluck('host')
  expect(told).toEqual(['c.example'])

  // However often its author sends it, it goes on once; so does each of many, up to the limit of a day for their pod.
  const count = async () => (await api.pod.db('outbox').where({ name: 'forward-envelope' })).length
  await receive(api.pod, message, message)
  await receive(api.pod, message)
  expect(await count()).toBe(1)
  await receive(api.pod, publicMessage(carl, likeBy(carl, post)))
  expect(await count()).toBe(2)
  const other = fakePods.person('cora@c.example')
  await addRemotePerson(api.pod, other.address, other)
  const sameGuid = commentBy(other, post, { guid: comment.guid })
  await receive(api.pod, publicMessage(other, sameGuid))
  expect(await count()).toBe(3)
  await api.pod.db('forwarded_relayables').insert(
    Array.from({ length: INBOUND_LIMITS.forwardedOfPodADay - 4 }, () => ({
      ...{ authorId: author.id, guid: newGuid(), podId: author.podId },
    })),
  )
  const late = [commentBy(carl, post), commentBy(carl, post)].map((entity) => publicMessage(carl, entity))
  const unforwarded = async () => {
    const registry = new Registry()
    registerReceiveMetrics(registry)
    return Number(/^pod_unforwarded_messages_total (\d+)$/m.exec(await registry.metrics())?.[1])
  }
  const unforwardedBefore = await unforwarded()
  await receive(api.pod, ...late)
  expect([await count(), (await unforwarded()) - unforwardedBefore]).toEqual([4, 1])
  await api.pod.db('forwarded_relayables').update({ forwardedAt: api.pod.db.raw(`now() - interval '25 hours'`) })
  await receive(api.pod, ...late)
  expect(await count()).toBe(5)
  await api.pod.db('forwarded_relayables').update({ forwardedAt: api.pod.db.raw(`now() - interval '401 days'`) })
  await prune(api.pod)
  expect(await api.pod.db('forwarded_relayables')).toEqual([])

  // What the new pod relays is stored, and not sent back.
  await api.pod.db('outbox').delete()
  const relayed = publicMessage(quin, commentBy(carl, post))
  expect(await receive(api.pod, relayed)).toEqual(allStored)
  expect(await api.pod.db('outbox').where({ name: 'forward-envelope' })).toEqual([])
})

it('a late private comment is forwarded to the new identity alone, and its author gets the message of the move', async () => {
  const author = (await api.pod.db('people').where({ address: quin.address }).first()) as never
  const post = await addPost(api.pod, author, { public: false })
  const dora = fakePods.person('dora@d.example')
  const person = await addRemotePerson(api.pod, dora.address, dora)
  const posted: { path: string; body: string }[] = []
  await api.pod.db('pods').where({ host: 'q.example' }).update({ port: 3000, ssl: false })
  fakePods.script(`q.example:3000/receive/users/${quin.guid}`, async (request, response) => {
    posted.push({ path: request.url ?? '', body: await text(request) })
    response.writeHead(202).end()
  })
  await api.pod.db('outbox').delete()
  await api.pod.db('deliveries').delete()
  const comment = commentBy(dora, post, { text: 'For the readers' })
  const { rejected } = await receive(api.pod, privateMessage(dora, ann, comment))
  expect(rejected).toEqual(['RecipientClosed'])

  const [forwarded, ...more] = await api.pod.db('outbox').where({ name: 'forward-envelope' }).pluck('data')
  expect(more).toEqual([])
  expect(JSON.stringify(forwarded)).not.toContain('For the readers')
  await forwardEnvelope(api.pod, forwarded)
  const [{ body } = { body: '' }] = posted
  const envelope = decryptEnvelope(body, quin.privateKey)
  expect(
    verifyEnvelope(envelope ?? '', new Map([[dora.address, createPublicKey(dora.publicKey)]]), new Date()),
  ).toMatchObject({
    ...{ state: 'verified', sender: dora.address, signature: 'valid', entity: { guid: comment.guid } },
  })
  expect(await api.pod.db('deliveries').join('pods', 'pods.id', 'podId').pluck('pods.id')).toEqual([person.podId])

  await api.pod.db('pods').where({ host: 'q.example' }).update({ port: 443, ssl: true })

  // A private comment of another person, or under a post of another person, is not forwarded.
  await api.pod.db('outbox').delete()
  const other = await addPost(api.pod, person, { public: false })
  await receive(api.pod, privateMessage(dora, ann, commentBy(dora, other)))
  expect(await api.pod.db('outbox').where({ name: 'forward-envelope' })).toEqual([])
})

it('sessions and tokens end, the owner gets a mail, and the name stays taken', async () => {
  const { cleo } = await api.people('cleo')
  await confirmMailbox(api.pod, 'cleo')
  const browser = openBrowser(api.app, api.pod.config.url)
  await browser.visit('/users/sign_in')
  await browser.submit({ username: 'cleo', password: 'the password of cleo' }, '/users/sign_in')
  const readSettings = async () => (await browser.visit('/settings')).body.includes('<h1>Settings</h1>')
  expect([await readSettings(), (await cleo.get('/user')).status]).toEqual([true, 200])
  await api.pod.db('outbox').where({ queue: 'mail' }).delete()
  const sessionsOfCleo = () =>
    api.pod.db('oidc_records').where({ model: 'Session' }).whereRaw(`payload ->> 'accountId' = ?`, [cleo.address])
  expect(await sessionsOfCleo()).toHaveLength(1)
  const { uid } = await requestExport(api.pod, cleo.viewer, 'archive')
  await api.pod.db('exports').where({ uid }).update({ state: 'ready' })

  const from = { id: cleo.viewer.personId, address: cleo.address }
  expect(await receive(api.pod, await moveOf(from, quin))).toEqual(allStored)

  expect([await readSettings(), (await cleo.get('/user')).status]).toEqual([false, 401])
  const signIn = async (password: string) => {
    await browser.visit('/users/sign_in')
    return (await browser.submit({ username: 'cleo', password }, '/users/sign_in')).body
  }
  expect(await signIn('the password of cleo')).toContain(`This account has moved to ${quin.address}.`)
  expect(await signIn('another password')).not.toContain(quin.address)
  expect(await api.pod.db('authorizations').where({ userId: cleo.viewer.userId })).toEqual([])
  expect(await sessionsOfCleo()).toEqual([])
  expect((await api.pod.db('exports').where({ uid }).first()).expiresAt.getTime()).toBeLessThanOrEqual(Date.now())
  expect(await findNewAccountRefusals(api.pod, { username: 'cleo', password: 'a long enough one' })).toMatchObject([
    { reason: 'username_taken' },
  ])
  expect(await runMails(api.pod)).toEqual(['done'])
  const [mail] = smtp.mails
  expect(mail?.to).toEqual(['cleo@mail.example'])
  expect(mail?.text).toContain(`${cleo.address} has moved to ${quin.address}`)
})

it('e-mail address, password and second factor are deleted 30 days after the move, the key stays', async () => {
  const { dan, eve } = await api.people('dan', 'eve')
  for (const name of ['dan', 'eve']) await confirmMailbox(api.pod, name)
  const { userId } = dan.viewer
  await api.pod.db('recovery_codes').insert({ userId, codeHash: Buffer.alloc(32) })
  await receive(api.pod, await moveOf({ id: dan.viewer.personId, address: dan.address }, quin))
  const move = api.pod.db('account_migrations').where({ oldPersonId: dan.viewer.personId })
  const kept = async () => {
    const user = await api.pod.db('users').where({ id: userId }).first()
    const secrets = await api.pod.db('user_secrets').where({ userId }).first()
    const codes = await api.pod.db('recovery_codes').where({ userId })
    return [user.email, user.username, secrets.passwordHash !== null, secrets.sealedPrivateKey !== null, codes.length]
  }

  await move.clone().update({ createdAt: api.pod.db.raw(`now() - interval '29 days'`) })
  await prune(api.pod)
  expect(await kept()).toEqual(['dan@mail.example', 'dan', true, true, 1])

  await move.clone().update({ createdAt: api.pod.db.raw(`now() - interval '31 days'`) })
  await prune(api.pod)
  expect(await kept()).toEqual([null, 'dan', false, true, 0])
  expect(await api.pod.db('users').where({ id: eve.viewer.userId }).first()).toMatchObject({
    email: 'eve@mail.example',
  })
})

it('pages lead from mentions of the old address, and from links that name it, to the newest identity', async () => {
  const { hana } = await api.people('hana')
  const [olga, rosa] = [fakePods.person('olga@o.example'), fakePods.person('rosa@r.example')]
  for (const person of [olga, rosa]) await addRemotePerson(api.pod, person.address, person)
  const linked = postBy(olga)
  expect(await receive(api.pod, publicMessage(olga, linked))).toEqual(allStored)
  const entity = {
    ...{ type: 'account_migration' as const, author: olga.address, old_identity: olga.address },
    profile: profileOf(rosa, { first_name: 'Rosa' }),
    signature: signMigration({ from: olga.address, to: rosa.address }, rosa.privateKey),
    remote_photo_path: undefined,
  }
  expect(await receive(api.pod, publicMessage(olga, entity))).toEqual(allStored)
  const link = `diaspora://${olga.address}/post/${linked.guid}`
  const { body: post } = await hana.post('/posts', { body: `@{Olga; ${olga.address}} wrote ${link}`, public: true })

  const { body } = await get(`/posts/${post.guid}`)
  expect(body).toContain(`href="/people/${rosa.guid}"`)
  expect(body).not.toContain(`href="/people/${olga.guid}"`)
  expect(body).toContain(`href="/posts/${linked.guid}"`)
})

/** A move from an account that this pod knows and has closed. */
async function moveOfKnown(address: string, to: ApiPerson): Promise<void> {
  const old = await addRemotePerson(api.pod, address)
  await api.pod.db('people').where({ id: old.id }).update({ closedAt: new Date() })
  const move = { oldPersonId: old.id, oldAddress: address, newPersonId: to.viewer.personId, signature: '' }
  await api.pod.db('account_migrations').insert(move)
}

it('the page of a person who has moved here names the former address for 30 days', async () => {
  const { gina } = await api.people('gina')
  const page = async () => (await get(`/people/${gina.guid}`)).body
  expect(await page()).not.toContain('was <code>')
  await moveOfKnown('gina@old.example', gina)
  expect(await page()).toContain('was <code>gina@old.example</code>')
  await api.pod
    .db('account_migrations')
    .where({ newPersonId: gina.viewer.personId })
    .update({ createdAt: api.pod.db.raw(`now() - interval '31 days'`) })
  expect(await page()).not.toContain('gina@old.example')
})

it.each(['unknown', 'known and open'])(
  'a move without a proof is shown nowhere: the old account is %s',
  async (state) => {
    const name = state.slice(0, 5).trim()
    const people = await api.people(`ivo_${name}`, `kim_${name}`)
    const [claimant, reader] = [people[`ivo_${name}`], people[`kim_${name}`]] as [ApiPerson, ApiPerson]
    const claimed = `alice-${name}@small.example`
    const claim = { oldAddress: claimed, newPersonId: claimant.viewer.personId, signature: '', envelope: 'x' }
    await api.pod.db('account_migrations').insert(claim)
    const alice = state === 'unknown' ? undefined : await addRemotePerson(api.pod, claimed)

    expect((await get(`/people/${claimant.guid}`)).body).not.toContain(claimed)
    const { body: found } = await reader.get(`/search/users?name_or_handle=${encodeURIComponent(claimed)}`)
    expect(found.map(({ guid }: { guid: string }) => guid)).toEqual(alice === undefined ? [] : [alice.guid])
    const { body: post } = await reader.post('/posts', { body: `Hello @{Alice; ${claimed}}`, public: true })
    const { body } = await get(`/posts/${post.guid}`)
    expect(body).not.toContain(claimant.guid)
    if (alice !== undefined) expect(body).toContain(`href="/people/${alice.guid}"`)
    const looked = await get(`/people?q=${encodeURIComponent(claimed)}`)
    expect(looked.headers.location ?? '').not.toContain(claimant.guid)
  },
)

it('nothing leads to a blocked pod', async () => {
  await api.pod.db('pods').where({ host: 'q.example' }).update({ blockedAt: new Date() })

  expect((await get(`/people/${ann.guid}`)).statusCode).toBe(410)
  expect((await bob.get(`/users/${ann.guid}`)).status).toBe(404)
})
