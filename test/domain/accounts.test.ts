import { createHash } from 'node:crypto'
import { verify } from '@node-rs/argon2'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readConfig } from '../../src/config/config.js'
import { createUser, findUser, listUsers, resetPassword } from '../../src/domain/accounts/accounts.js'
import { closeUser } from '../../src/domain/accounts/closing/close-now.js'
import { readScopes } from '../../src/domain/accounts/scopes.js'
import { mintToken, revokeToken } from '../../src/domain/accounts/tokens.js'
import { findViewer, openViewerLookup } from '../../src/domain/accounts/viewers.js'
import { Authorization } from '../../src/persistence/models/access-token.js'
import { Aspect } from '../../src/persistence/models/aspect.js'
import { Person } from '../../src/persistence/models/person.js'
import { User } from '../../src/persistence/models/user.js'
import { type OpenServices, openServices } from '../../src/services/open-services.js'
import { createTestDatabase, type TestDatabase } from '../support/databases/test-database.js'
import { fixedKeyCrypto } from '../support/pods/fixed-key-crypto.js'

const KEYS = { publicKey: 'a public key', privateKey: 'a private key' }
const PASSWORD = 'correct horse'
const DAY = 86_400

let database: TestDatabase
let pod: OpenServices

beforeAll(async () => {
  database = await createTestDatabase()
  const config = readConfig({
    POD_URL: 'https://pod.example',
    DATABASE_URL: database.url,
    SECRET_KEY: 'a key for the accounts of this test',
    LOG_LEVEL: 'silent',
    USERNAME_BLACKLIST: 'root,Admin',
  })
  pod = await openServices(config, 'command', { crypto: { ...fixedKeyCrypto(), generateKeyPair: async () => KEYS } })
})
afterAll(async () => {
  await pod.close()
  await database.drop()
})

async function rowsOf(username: string) {
  const user = await User.byUsername(pod.db, username)
    .withGraphFetched('[secrets, aspects, person.profile]')
    .throwIfNotFound()
  const { secrets, person } = user
  if (!secrets || !person?.profile) throw new Error('A user always has secrets, a person and a profile.')
  return { user, secrets, person, profile: person.profile }
}

it('an account with another host than the existing ones is refused', async () => {
  await make('first')
  const config = { ...pod.config, host: 'localhost:3000' }

  await expect(createUser({ ...pod, config }, { username: 'second', password: PASSWORD })).rejects.toMatchObject({
    reason: 'host_changed',
    message: expect.stringMatching(/ belongs to pod\.example, .* localhost:3000\. Restore the original POD_URL/),
  })
  expect(await findUser(pod, 'second')).toBeUndefined()
})

async function make(username: string) {
  return createUser(pod, { username, password: PASSWORD })
}

describe('createUser', () => {
  it('makes a person with an address here, a guid of 32 hex characters and an empty profile', async () => {
    const account = await make('alice')

    expect(account).toMatchObject({ username: 'alice', address: 'alice@pod.example', role: 'none', closedAt: null })
    expect(account.guid).toMatch(/^[0-9a-f]{32}$/)
    const { person, profile } = await rowsOf('alice')
    expect(person).toMatchObject({ guid: account.guid, podId: null, publicKey: KEYS.publicKey, name: '' })
    expect(profile).toMatchObject({ searchable: true, publicDetails: false, bio: '' })
  })

  it('creates the four aspects of a new account, in their order', async () => {
    await make('aspects')

    const { user } = await rowsOf('aspects')
    const aspects = await Aspect.query(pod.db).where({ userId: user.id }).orderBy('position')
    expect(aspects.map(({ name, position }) => [name, position])).toEqual([
      ['Family', 1],
      ['Friends', 2],
      ['Work', 3],
      ['Acquaintances', 4],
    ])
  })

  it('keeps the password as argon2id with 19 MiB and two passes', async () => {
    await make('hashed')

    const { secrets } = await rowsOf('hashed')
    expect(secrets.passwordHash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/)
    expect(await verify(secrets.passwordHash ?? '', PASSWORD)).toBe(true)
    expect(await verify(secrets.passwordHash ?? '', 'wrong horse')).toBe(false)
  })

  it('keeps the private key sealed', async () => {
    await make('sealed')

    const { secrets } = await rowsOf('sealed')
    expect(secrets.sealedPrivateKey.includes(KEYS.privateKey)).toBe(false)
    expect(pod.secrets.decrypt(secrets.sealedPrivateKey, `user ${secrets.userId}`)).toBe(KEYS.privateKey)
  })

  it.each(['', '.', '..', 'Alice', 'älice', 'a b', 'a@b', 'a'.repeat(33), 'a/b', 'a\n'])(
    'refuses the username %j',
    async (username) => {
      await expect(make(username)).rejects.toMatchObject({ name: 'Refusal', reason: 'username_invalid' })
    },
  )

  it('takes every kind of character a username may have', async () => {
    const username = `a-b_c.${'9'.repeat(26)}`

    expect(await make(username)).toMatchObject({ address: `${username}@pod.example` })
  })

  it.each(['root', 'admin', 'pod-account'])('refuses the reserved username %s', async (username) => {
    await expect(make(username)).rejects.toMatchObject({ reason: 'username_reserved' })
  })

  it.each(['nine char', 'ä'.repeat(9), 'x'.repeat(129), 'ä'.repeat(65)])(
    'refuses the password %j',
    async (password) => {
      await expect(createUser(pod, { username: 'short', password })).rejects.toMatchObject({
        reason: 'password_invalid',
      })
      expect(await findUser(pod, 'short')).toBeUndefined()
    },
  )

  it('gives a name that several request at once to one of them, and stores nothing of the others', async () => {
    const attempts = await Promise.allSettled(Array.from({ length: 5 }, () => make('raced')))

    expect(attempts.filter(({ status }) => status === 'fulfilled')).toHaveLength(1)
    for (const attempt of attempts) {
      if (attempt.status === 'rejected') expect(attempt.reason).toMatchObject({ reason: 'username_taken' })
    }
    expect(await Person.query(pod.db).where({ address: 'raced@pod.example' })).toHaveLength(1)
  })

  it('does not make keys for a name that is taken', async () => {
    await make('early')
    const noKeys = { ...fixedKeyCrypto(), generateKeyPair: () => Promise.reject(new Error('Keys were made.')) }

    const again = createUser({ ...pod, crypto: noKeys }, { username: 'early', password: PASSWORD })

    await expect(again).rejects.toMatchObject({ reason: 'username_taken' })
  })

  it('does not give the name of a closed account away', async () => {
    await make('gone')
    await closeUser(pod, 'gone')

    await expect(make('gone')).rejects.toMatchObject({ reason: 'username_taken' })
  })
})

describe('listUsers', () => {
  it('lists by name, page after page, closed ones too', async () => {
    for (const name of ['list-c', 'list-a', 'list-b']) await make(name)
    await closeUser(pod, 'list-b')

    const first = await listUsers(pod, { after: 'list-', limit: 2 })
    const second = await listUsers(pod, { after: 'list-b', limit: 1 })

    expect(first.map(({ username, closedAt }) => [username, closedAt === null])).toEqual([
      ['list-a', true],
      ['list-b', false],
    ])
    expect(second.map(({ address }) => address)).toEqual(['list-c@pod.example'])
  })
})

describe('resetPassword', () => {
  it('replaces the password', async () => {
    await make('changer')

    await resetPassword(pod, 'changer', 'battery staple')

    const { secrets } = await rowsOf('changer')
    expect(await verify(secrets.passwordHash ?? '', 'battery staple')).toBe(true)
    await expect(resetPassword(pod, 'changer', 'short')).rejects.toMatchObject({ reason: 'password_invalid' })
  })

  it('refuses an unknown or closed account', async () => {
    await make('ended')
    await closeUser(pod, 'ended')

    await expect(resetPassword(pod, 'nobody', PASSWORD)).rejects.toMatchObject({ reason: 'user_missing' })
    await expect(resetPassword(pod, 'ended', PASSWORD)).rejects.toMatchObject({ reason: 'user_closed' })
    await expect(mintToken(pod, 'ended', { scopes: [], lifetime: DAY })).rejects.toMatchObject({
      reason: 'user_closed',
    })
    await expect(closeUser(pod, 'ended')).rejects.toMatchObject({ reason: 'user_closed' })
  })
})

describe('mintToken', () => {
  it('makes a token of 256 bits that is found by its hash alone', async () => {
    await make('bearer')

    const token = await mintToken(pod, 'bearer', { scopes: ['profile', 'public:read'], lifetime: DAY })

    expect(token.accessToken).toMatch(/^[0-9a-f]{64}$/)
    const { user } = await rowsOf('bearer')
    expect(await findViewer(pod, token.accessToken)).toMatchObject({
      userId: user.id,
      personId: user.personId,
      tokenId: expect.any(Number),
      authorizationId: expect.any(Number),
      scopes: new Set(['profile', 'public:read']),
    })
    const stored = await pod.db('access_tokens').orderBy('id', 'desc').first()
    expect(stored.tokenHash).toEqual(createHash('sha256').update(token.accessToken).digest())
    expect(JSON.stringify(stored)).not.toContain(token.accessToken)
  })

  it('lets tokens with different scopes exist side by side', async () => {
    await make('several')

    const read = await mintToken(pod, 'several', { scopes: ['public:read'], lifetime: DAY })
    const all = await mintToken(pod, 'several', { scopes: ['profile', 'public:read'], lifetime: DAY })

    expect((await findViewer(pod, read.accessToken))?.scopes).toEqual(new Set(['public:read']))
    expect((await findViewer(pod, all.accessToken))?.scopes).toEqual(new Set(['profile', 'public:read']))
  })

  it('ends after its lifetime, by the clock of the database', async () => {
    await make('brief')
    const { rows } = await pod.db.raw('select now() as now')
    const databaseNow: Date = rows[0].now

    const long = await mintToken(pod, 'brief', { scopes: [], lifetime: 2 * DAY })
    const over = await mintToken(pod, 'brief', { scopes: [], lifetime: 0 })

    const lasts = long.expiresAt.getTime() - databaseNow.getTime()
    expect(lasts).toBeGreaterThanOrEqual(2 * DAY * 1_000 - 1)
    expect(lasts).toBeLessThan(2 * DAY * 1_000 + 60_000)
    expect(await findViewer(pod, over.accessToken)).toBeUndefined()
  })
})

describe('openViewerLookup', () => {
  it('finds several viewers at once, one of them twice, and caches none', async () => {
    await make('first-of-two')
    await make('second-of-two')
    const [first, second] = [await rowsOf('first-of-two'), await rowsOf('second-of-two')]
    const tokens = { scopes: [], lifetime: DAY }
    const one = await mintToken(pod, 'first-of-two', tokens)
    const other = await mintToken(pod, 'second-of-two', tokens)
    const viewers = openViewerLookup(pod)
    const ask = async () => {
      const asked = [one.accessToken, 'unknown', other.accessToken, one.accessToken]
      return (await Promise.all(asked.map((token) => viewers.find(token)))).map((viewer) => viewer?.userId)
    }

    expect(await ask()).toEqual([first.user.id, undefined, second.user.id, first.user.id])
    await revokeToken(pod, one.accessToken)
    expect(await ask()).toEqual([undefined, undefined, second.user.id, undefined])
  })
})

describe('revokeToken', () => {
  it('revokes this token and no other, and leaves no authorization of the operator', async () => {
    await make('revoker')
    const one = await mintToken(pod, 'revoker', { scopes: [], lifetime: DAY })
    const other = await mintToken(pod, 'revoker', { scopes: [], lifetime: DAY })

    await revokeToken(pod, one.accessToken)

    expect(await findViewer(pod, one.accessToken)).toBeUndefined()
    expect(await findViewer(pod, other.accessToken)).toBeDefined()
    const { user } = await rowsOf('revoker')
    expect(await Authorization.query(pod.db).where({ userId: user.id })).toHaveLength(1)
    await expect(revokeToken(pod, one.accessToken)).rejects.toMatchObject({ reason: 'token_unknown' })
  })

  it('leaves the authorization of a client alone', async () => {
    await make('app-user')
    const { user } = await rowsOf('app-user')
    const token = await mintToken(pod, 'app-user', { scopes: [], lifetime: DAY })
    const [client] = await pod
      .db('clients')
      .insert({ clientId: 'an app', redirectUris: ['app://callback'] })
      .returning('id')
    await Authorization.query(pod.db).where({ userId: user.id }).patch({ clientId: client.id })

    await revokeToken(pod, token.accessToken)

    expect(await Authorization.query(pod.db).where({ userId: user.id })).toHaveLength(1)
  })
})

describe('closeUser', () => {
  it('locks everything out at once: password, role, tokens, authorizations', async () => {
    await make('leaver')
    await User.query(pod.db).where({ username: 'leaver' }).patch({ role: 'moderator' })
    const token = await mintToken(pod, 'leaver', { scopes: [], lifetime: DAY })

    await closeUser(pod, 'leaver')

    const { user, secrets, person } = await rowsOf('leaver')
    expect(secrets.passwordHash).toBeNull()
    expect(user.role).toBeNull()
    expect(user.closedAt).toBeInstanceOf(Date)
    expect(person.closedAt).toEqual(user.closedAt)
    expect(await findViewer(pod, token.accessToken)).toBeUndefined()
    expect(await Authorization.query(pod.db).where({ userId: user.id })).toHaveLength(0)
  })

  it('refuses the last admin', async () => {
    await make('only-admin')
    await User.query(pod.db).where({ username: 'only-admin' }).patch({ role: 'admin' })

    await expect(closeUser(pod, 'only-admin')).rejects.toMatchObject({ reason: 'last_admin' })
    expect(await findUser(pod, 'only-admin')).toMatchObject({ closedAt: null })
  })

  it('leaves no token if tokens are created at the same time', async () => {
    await make('racer')

    const results = await Promise.allSettled([
      ...Array.from({ length: 4 }, () => mintToken(pod, 'racer', { scopes: [], lifetime: DAY })),
      closeUser(pod, 'racer'),
      ...Array.from({ length: 4 }, () => mintToken(pod, 'racer', { scopes: [], lifetime: DAY })),
    ])

    expect(results[4]).toMatchObject({ status: 'fulfilled' })
    const { user } = await rowsOf('racer')
    expect(await Authorization.query(pod.db).where({ userId: user.id })).toHaveLength(0)
  })
})

describe('readScopes', () => {
  it('keeps each scope once, adds the default scope, and names unknown scopes', () => {
    expect(readScopes(' profile, profile  public:write\ntags:read ')).toEqual({
      scopes: ['profile', 'tags:read', 'public:read'],
      unknown: ['public:write'],
    })
  })
})
