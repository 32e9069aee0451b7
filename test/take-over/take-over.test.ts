import { createHash, createPublicKey, generateKeyPairSync, verify } from 'node:crypto'
import { mkdir, mkdtemp, readdir, rm, symlink, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { checkTakeOver } from '../../bin/doctor/check-take-over.js'
import { buildProgram } from '../../bin/program.js'
import { readConfig } from '../../src/config/config.js'
import { checkCode } from '../../src/domain/accounts/factors/second-factor.js'
import { findTotpStep, readBase32, totpCode } from '../../src/domain/accounts/factors/totp.js'
import { DIASPORA_PEPPER } from '../../src/domain/accounts/passwords/bcrypt-password.js'
import { signIn } from '../../src/domain/accounts/sign-in.js'
import { findFactors } from '../../src/persistence/accounts/factors.js'
import { withSessionLock } from '../../src/persistence/database/session-lock.js'
import { openServices } from '../../src/services/open-services.js'
import { createSecrets, readSecretKey } from '../../src/services/secrets.js'
import { closeUnfinishedAccounts } from '../../src/take-over/close-unfinished-accounts.js'
import { findInvalidRows } from '../../src/take-over/preflight/findings.js'
import { openSource } from '../../src/take-over/source/open-source.js'
import {
  abortTakeOver,
  copyOldPod,
  examineOldPod,
  finishTakeOver,
  rehearse,
  switchOver,
  type TakeOverOptions,
  type TakeOverTarget,
  verifyBuilt,
} from '../../src/take-over/take-over.js'
import { testLog } from '../support/assertions/test-log.js'
import { type OpenDatabase, openEmptyDatabase } from '../support/databases/test-database.js'
import { postForm } from '../support/http/oidc-client.js'
import { buildPod, type TestPod } from '../support/pods/build-pod.js'
import { fixedKeyCrypto } from '../support/pods/fixed-key-crypto.js'
import { contentOf } from '../support/take-over/content-of.js'
import { bcryptOf, createOldPod, guidOf, OLD_HOST, OLD_PASSWORD, type OldPod } from '../support/take-over/old-pod.js'

let old: OldPod
let database: OpenDatabase
let target: TakeOverTarget
let folder: string
/** The key of ID tokens of the old pod. */
const oldKey = makeOidcKey()
let options: TakeOverOptions
let before: string
/** The pod after the switch. */
let pod: TestPod

const environment = () => ({
  POD_URL: `https://${OLD_HOST}`,
  DATABASE_URL: database.url,
  SECRET_KEY: 'a key that is only good for tests',
  UPLOADS_DIR: join(folder, 'uploads'),
  DATA_DIR: join(folder, 'data'),
  OIDC_ISSUER: `https://${OLD_HOST}/`,
})

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'take-over-'))
  const images = join(folder, 'old', 'images')
  await mkdir(images, { recursive: true })
  for (const name of ['x.JPG', 'thumb_large_x.JPG', 'scan.tiff', '.hidden'])
    await writeFile(join(images, name), `bytes of ${name}`)
  await symlink(join(images, 'x.JPG'), join(images, 'linked.jpg'))
  await mkdir(join(images, 'folder'))
  old = await createOldPod()
  database = await openEmptyDatabase()
  const config = readConfig(environment())
  target = { db: database.db, url: database.url, config, secrets: createSecrets(await readSecretKey(config)) }
  options = {
    from: old.url,
    uploads: join(folder, 'old'),
    uploadsMode: 'link',
    oidcKey: oldKey.privateText,
    pepper: DIASPORA_PEPPER,
    rate: undefined,
    shouldVerifyAllSignatures: true,
    shouldLockBrokenKeys: false,
    sidekiq: undefined,
    mayLoseJobs: true,
    signal: new AbortController().signal,
    report: () => undefined,
  }
  before = await contentOf(old.db)
}, 180_000)

afterAll(async () => {
  await pod?.close()
  await database?.close()
  await old?.close()
  await rm(folder, { recursive: true, force: true })
})

function makeOidcKey() {
  const { privateKey, publicKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  return { privateText: privateKey.export({ type: 'pkcs1', format: 'pem' }).toString(), publicKey }
}

/** Tables with the time of the build, or with a seal, whose nonce is random. */
const CHANGED_BY_BUILD = [
  ...[
    'take_over',
    'user_secrets',
    'signing_keys',
    'users',
    'hidden_posts',
    'blocks',
    'periodic',
    'refresh_tokens',
    'knex_migrations_lock',
  ],
]

const rowsOf = async (select: string, values: readonly (string | number)[] = []) =>
  (await database.db.raw(select, [...values])).rows

it('reports each kind of dirty rows, and changes neither database', async () => {
  const { findings, blocks, accounts, keyPairs, newestMigration } = await examineOldPod(target, options)
  expect(blocks).toEqual([])
  expect(newestMigration).toBe('20230604015559')
  expect(accounts).toEqual({ all: 5, closed: 2, locked: 1, secondFactor: 1 })
  expect(keyPairs).toEqual({ checked: 5, broken: 0 })
  const counts: Record<string, number> = {}
  for (const { code, count } of findings) counts[code] = (counts[code] ?? 0) + count
  expect(counts).toEqual({
    D01: 1,
    D02: 1,
    D03: 3,
    D04: 1,
    D05: 1,
    D06: 2,
    D07: 5,
    D08: 4,
    D09: 5,
    D11: 1,
    D12: 1,
    D13: 3,
    D14: 2,
    D15: 2,
    D17: 5,
    D19: 1,
    D43: 4,
  })
  expect(findings.filter(({ code }) => code === 'D43').map(({ table }) => table)).toEqual([
    'posts',
    'comments',
    'poll_answers',
  ])
  expect(findings.find(({ code }) => code === 'D01')?.examples).toEqual(['21=24'])
  expect(findings.filter(({ code }) => code === 'D17').map(({ table, examples }) => [table, examples])).toEqual([
    ['photos', ['4']],
    ['photos without file', ['2', '4']],
    ['files without photo', ['linked.jpg', 'scan.tiff']],
  ])
  expect(
    await rowsOf(`select to_regclass('public.users') is null and to_regnamespace('take_over') is null as empty`),
  ).toEqual([{ empty: true }])
  expect(await contentOf(old.db)).toBe(before)
})

it('blocks other schemas, equal names, foreign handles, and the database of this pod', async () => {
  const blocksWith = async (change: string, undo: string) => {
    await old.db.raw(change)
    const { blocks } = await examineOldPod(target, options)
    await expect(copyOldPod(target, options)).rejects.toThrow(`${blocks[0]?.code}: `)
    await old.db.raw(undo)
    return blocks.map(({ code }) => code)
  }
  const newer = `insert into schema_migrations values ('20990101000000')`
  expect(await blocksWith(newer, `delete from schema_migrations where version = '20990101000000'`)).toEqual(['F3'])
  expect(
    await blocksWith(
      `update users set username = 'Alice' where id = 2`,
      `update users set username = 'bob' where id = 2`,
    ),
  ).toEqual(['F1'])
  const moved = `update people set diaspora_handle = 'bob@other.example' where id = 12`
  expect(await blocksWith(moved, `update people set diaspora_handle = 'bob@${OLD_HOST}' where id = 12`)).toEqual(['F2'])
  expect(
    await blocksWith(`alter table people rename column guid to uid`, `alter table people rename column uid to guid`),
  ).toEqual(['F3'])
  const withoutPictures = { ...options, uploads: join(folder, 'nowhere') }
  expect((await examineOldPod(target, withoutPictures)).blocks.map(({ code }) => code)).toEqual(['F7'])
  await expect(copyOldPod(target, withoutPictures)).rejects.toThrow('F7: There is no folder')
  await expect(copyOldPod(target, { ...options, from: database.url })).rejects.toThrow(
    '--from is the database of this pod',
  )
  expect(await contentOf(old.db)).toBe(before)
})

it('estimates a table that takes too long to count, and reports checks that are not possible', async () => {
  const source = await openSource(old.url, 200)
  try {
    expect(await source.countRows('reports')).toEqual({ rows: 2, isEstimate: false })
    await old.db.raw('analyze reports')
    const tables = await source.listTables()
    await old.db.transaction(async (transaction) => {
      await transaction.raw('lock table reports in access exclusive mode')
      expect(await source.countRows('reports')).toEqual({ rows: 2, isEstimate: true })
      const unlocked = { ...source, listTables: async () => tables }
      const { notChecked } = await findInvalidRows(unlocked, OLD_HOST)
      expect(notChecked).toEqual(['D07', 'D07', 'D07', 'D12'].map((code) => ({ code, table: 'reports' })))
    })
  } finally {
    await source.close()
  }
})

it('refuses a file that is not an RSA key before it copies anything', async () => {
  const { privateKey } = generateKeyPairSync('ed25519')
  for (const oidcKey of ['no key', privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()]) {
    for (const step of [examineOldPod, copyOldPod, rehearse])
      await expect(step(target, { ...options, oidcKey })).rejects.toThrow('--oidc-key holds no RSA private key')
  }
  expect(await rowsOf(`select to_regnamespace('take_over') is null as empty`)).toEqual([{ empty: true }])
})

it('copies the same when it is interrupted ten times, and only compares the second time', async () => {
  for (let run = 0; run < 10; run += 1) {
    const interruption = new AbortController()
    const report = ({ step, done }: { step: string; done: number }) => {
      if (step === 'rows' && done > run * 18) interruption.abort(new Error('interrupted'))
    }
    await expect(copyOldPod(target, { ...options, signal: interruption.signal, report })).rejects.toThrow('interrupted')
  }
  const { copied, compared } = await copyOldPod(target, options)
  expect(copied).toBeGreaterThan(0)
  const staged = await contentOf(database.db, 'take_over', ['copied_blocks'])
  expect(await copyOldPod(target, options)).toMatchObject({ copied: 0, compared })
  expect(await contentOf(database.db, 'take_over', ['copied_blocks'])).toBe(staged)
  for (const { name, rows } of await rowsOf('select name, rows::int from take_over.source_tables')) {
    expect(await rowsOf(`select count(*)::int from take_over.??`, [name])).toEqual([{ count: rows }])
  }
}, 180_000)

it('holds no secret in its staging tables or its report', async () => {
  const { rows } = await database.db.raw(
    `select relname as name from pg_class where relnamespace = 'take_over'::regnamespace and relkind = 'r'`,
  )
  let content = ''
  for (const { name } of rows)
    content += JSON.stringify(await rowsOf('select ??::text from take_over.??', [name, name]))
  content += JSON.stringify(await rowsOf('select report from take_over'))
  for (const [name, secret] of Object.entries(old.secrets)) {
    if (name !== 'privateText') expect(content, name).not.toContain(secret)
  }
})

it('builds the same target twice, with all keys and indexes, and no web process starts on it', async () => {
  const selectDefinitions = `
    select conrelid::regclass::text as name, conname::text || ' ' || pg_get_constraintdef(oid) as definition
    from pg_constraint where connamespace = 'public'::regnamespace
    union all select tablename::text, indexdef from pg_indexes where schemaname = 'public' order by 1, 2`
  await copyOldPod(target, options)
  const definitions = await rowsOf(selectDefinitions)
  expect(definitions.length).toBeGreaterThan(0)
  const { verification } = await rehearse(target, options)
  expect(verification.differences).toEqual([])
  expect(await rowsOf(selectDefinitions)).toEqual(definitions)
  const content = await contentOf(database.db, 'public', CHANGED_BY_BUILD)
  await rehearse(target, options)
  expect(await contentOf(database.db, 'public', CHANGED_BY_BUILD)).toBe(content)
  const start = openServices(target.config, 'web', { crypto: fixedKeyCrypto(), log: testLog() })
  await expect(start).rejects.toThrow('This pod is taking over another one')
}, 180_000)

it('finds a changed row, and a key that does not fit', async () => {
  await database.db.raw(`update comments set text = text || '.' where id = 2`)
  const { differences } = await verifyBuilt(target, options)
  expect(differences).toEqual([{ check: 'comments', detail: 'rows differ', examples: ['2'] }])
  await database.db.raw(`update comments set text = left(text, -1) where id = 2`)
  await database.db.raw(`update people set public_key = (select public_key from people where id = 12) where id = 11`)
  const second = await verifyBuilt(target, options)
  const checks = second.differences.map(({ check }) => check)
  expect(checks).toEqual(['people', 'private keys', 'requests for people'])
  await database.db.raw(`update people set public_key = ? where id = 11`, [old.publicKeys['alice'] ?? ''])
})

it('finds a wrong private key of a closed account, which still signs its account deletion', async () => {
  const carol = 3
  const [{ sealed } = {}] = await rowsOf('select sealed_private_key as sealed from user_secrets where user_id = ?', [
    carol,
  ])
  const [{ other } = {}] = await rowsOf('select sealed_private_key as other from user_secrets where user_id = 2')
  const key = target.secrets.decrypt(other as Buffer, 'user 2')
  const setKey = (value: Buffer) =>
    database.db('user_secrets').where({ user_id: carol }).update({ sealed_private_key: value })
  await setKey(target.secrets.encrypt(key, `user ${carol}`))
  const { differences } = await verifyBuilt(target, options)
  await setKey(sealed as Buffer)
  expect(differences).toEqual([{ check: 'private keys', detail: 'do not fit', examples: [String(carol)] }])
})

it('finds a changed guid of a row whose own guid the network refuses', async () => {
  const [{ guid } = { guid: '' }] = await rowsOf('select guid from posts where id = 104')
  await database.db.raw(`update posts set guid = 'another-guid-0123456789' where id = 104`)
  const { differences } = await verifyBuilt(target, options)
  expect(differences).toContainEqual({ check: 'posts', detail: 'rows differ', examples: ['104'] })
  await database.db.raw('update posts set guid = ? where id = 104', [guid])
  expect((await verifyBuilt(target, options)).differences).toEqual([])
})

it('finds wrong rights, changed signatures and changed pictures', async () => {
  const checksAfter = async (change: string, undo: string) => {
    await database.db.raw(change)
    const { differences } = await verifyBuilt(target, options)
    await database.db.raw(undo)
    return differences.map(({ check, examples }) => [check, examples])
  }
  expect(
    await checksAfter(
      `insert into post_visibilities (user_id, post_id, author_id, created_at) values (4, 103, 11, now())`,
      `delete from post_visibilities where user_id = 4`,
    ),
  ).toEqual([
    ['share_visibilities', []],
    ['post_visibilities', [String(4 * 2 ** 32 + 103)]],
    ['readers of private posts', ['103 for dave readable']],
  ])
  expect(
    await checksAfter(
      `update posts set public = true where id = 103`,
      `update posts set public = false where id = 103`,
    ),
  ).toContainEqual([
    'readers of private posts',
    ['103 for a visitor readable', ...['bob', 'carol', 'dave', 'erin'].map((name) => `103 for ${name} readable`)],
  ])
  expect(
    await checksAfter(
      `update comments set author_signature = 'AAAA' where id = 2`,
      `update comments set author_signature = (
         select regexp_replace(author_signature, '\\s', '', 'g') from take_over.comment_signatures where comment_id = 2
       ) where id = 2`,
    ),
  ).toEqual([
    ['comment_signatures', ['2']],
    ['requests for comments', ['2']],
  ])
  const copied = { ...options, uploads: join(folder, 'changed') }
  await mkdir(join(folder, 'changed', 'images'), { recursive: true })
  await writeFile(join(folder, 'changed', 'images', 'scan.tiff'), 'bytes of another picture')
  await utimes(join(folder, 'changed', 'images', 'scan.tiff'), 0, 0)
  expect((await verifyBuilt(target, copied)).differences).toEqual([
    { check: 'pictures', detail: '1 files differ', examples: ['scan.tiff'] },
  ])
}, 60_000)

it('restores the handle that a person has signed with before moving', async () => {
  const [comment] = await rowsOf('select signed_elements as elements from comments where id = 7')
  expect(comment.elements[0]).toEqual(['author', 'Mia@three.example:3000'])
})

it('verifies signatures of all orders of elements', async () => {
  const { signatures } = await verifyBuilt(target, options)
  const counts = signatures.map(({ table, order, ...found }) => [`${table}: ${order}`, found])
  expect(Object.fromEntries(counts)).toEqual({
    'comments: author guid parent_guid text mood created_at': { verified: 1, byOldHandle: 0, notVerified: 0 },
    'comments: author guid parent_guid text': { verified: 0, byOldHandle: 1, notVerified: 0 },
    'comments: author guid parent_guid text edited_at': { verified: 1, byOldHandle: 0, notVerified: 0 },
    'likes: positive guid parent_type parent_guid author': { verified: 1, byOldHandle: 0, notVerified: 0 },
  })
})

it('locks accounts with a broken key pair if this was chosen, and verifies the rest', async () => {
  const keys = await old.db('people').whereIn('id', [11, 12]).orderBy('id').pluck('serialized_public_key')
  await old.db('people').where({ id: 12 }).update({ serialized_public_key: keys[0] })
  await expect(rehearse(target, options)).rejects.toThrow('F2: 1 open accounts have no valid key pair')
  const { verification } = await rehearse(target, { ...options, shouldLockBrokenKeys: true })
  expect(verification.differences).toEqual([])
  expect(await rowsOf('select locked_at is not null as locked from users where id < 3 order by id')).toEqual([
    { locked: false },
    { locked: true },
  ])
  await old.db('people').where({ id: 12 }).update({ serialized_public_key: keys[1] })
}, 180_000)

it('needs only the disk space that it does not use yet', async () => {
  const embedded = { ...target, config: { ...target.config, databaseUrl: undefined, dataDir: folder } }
  const { disk, blocks, tables } = await examineOldPod(embedded, options)
  expect(tables.reduce((sum, { bytes }) => sum + bytes, 0)).toBeGreaterThan(0)
  expect(disk).toEqual({ needed: 0, free: expect.any(Number) })
  expect(blocks).toEqual([])
})

it('runs one command at a time, and confirms before it empties the database', async () => {
  for (const [name, value] of Object.entries(environment())) vi.stubEnv(name, value)
  const run = async (...words: readonly string[]) =>
    (await buildProgram('take-over')).parseAsync(['node', 'pod', 'take-over', ...words])
  try {
    const output = vi.spyOn(process.stdout, 'write').mockReturnValue(true)
    await run('verify', '--json')
    const [written] = output.mock.calls.at(-1) ?? []
    output.mockRestore()
    expect(JSON.parse(String(written)).signatures).toContainEqual({
      table: 'comments',
      order: 'author guid parent_guid text mood created_at',
      verified: 1,
      by_old_handle: 0,
      not_verified: 0,
    })
    await expect(run('abort')).rejects.toThrow('add --yes to confirm')
    await withSessionLock(database.db, 'take-over', { refuse: () => new Error('locked') }, async () => {
      await expect(run('abort', '--yes')).rejects.toThrow('Another command is taking over at this moment')
      await expect(run('finish')).rejects.toThrow('Another command is taking over at this moment')
    })
  } finally {
    vi.unstubAllEnvs()
  }
})

it('can be given up before the switch, and begun again', async () => {
  await database.db.transaction(async (transaction) => {
    await transaction.raw(`set local application_name = 'pod web'`)
    await expect(abortTakeOver(target)).rejects.toThrow('The database is in use by web')
  })
  expect(await rowsOf('select kid from signing_keys')).toEqual([{ kid: 'default' }])
  await abortTakeOver(target)
  expect(await rowsOf('select kid from signing_keys')).toEqual([])
  expect(
    await rowsOf(`select (select count(*)::int from users) as users, to_regnamespace('take_over') is null as dropped`),
  ).toEqual([{ users: 0, dropped: true }])
  await copyOldPod(target, options)
}, 180_000)

it('keeps the pepper of an earlier run unless another one is given', async () => {
  const storedPepper = async () =>
    target.secrets.decrypt((await rowsOf('select sealed_pepper as sealed from take_over'))[0].sealed, 'pepper')
  for (const [pepper, stored] of [
    ['pepper of the old pod', 'pepper of the old pod'],
    [undefined, 'pepper of the old pod'],
    [DIASPORA_PEPPER, DIASPORA_PEPPER],
  ] as const) {
    await copyOldPod(target, { ...options, pepper })
    expect(await storedPepper()).toBe(stored)
  }
}, 180_000)

it('cannot be given up when there is none', async () => {
  await abortTakeOver(target)
  await database.db('pods').insert({ host: 'kept.example', port: 443 })
  await expect(abortTakeOver(target)).rejects.toThrow('There is no take-over to abort')
  expect(await rowsOf('select host from pods')).toEqual([{ host: 'kept.example' }])
  await database.db('pods').delete()
  await copyOldPod(target, options)
}, 180_000)

it('copies the changes of the old pod since the first copy, and opens', async () => {
  await old.insert('posts', {
    id: 901,
    guid: guidOf('post-901'),
    author_id: 12,
    public: true,
    type: 'StatusMessage',
    text: 'new',
  })
  await old.db('posts').where({ id: 200 }).update({ text: 'edited' })
  await old.db('notifications').where({ id: 6 }).update({ unread: false })
  await old.db('posts').where({ id: 201 }).delete()
  await old.db('posts').where({ id: 202 }).update({ author_id: 11 })
  before = await contentOf(old.db)
  const beforeOpening = async () => {
    const opened = await openServices(target.config, 'command', { crypto: fixedKeyCrypto(), log: testLog() })
    const closed = await closeUnfinishedAccounts(opened).finally(() => opened.close())
    return { closed }
  }
  await switchOver(target, options, beforeOpening)
  const posts = await rowsOf(
    `select id::int, author_id::int as author, text from posts where id in (200, 201, 202, 901) order by id`,
  )
  expect(
    posts.map((post: { id: number; author: number; text: string }) => [post.id, post.author, post.text.trim()]),
  ).toEqual([
    [200, 12, 'edited'],
    [202, 11, '🌻 line\r\nof post 2'],
    [901, 12, 'new'],
  ])
  expect(await rowsOf('select read from notifications where id = 6')).toEqual([{ read: true }])
  const switchAgain = () => switchOver(target, options, async () => ({}))
  for (const step of [copyOldPod, rehearse, switchAgain, abortTakeOver]) {
    await expect(step(target, options)).rejects.toThrow('This pod is open')
  }
  expect(await contentOf(old.db)).toBe(before)
  // The switch has closed Erin, and deleted her contact.
  expect((await verifyBuilt(target, options)).differences).toEqual([])
  await database.db.raw(`update comments set text = text || '.' where id = 2`)
  expect((await verifyBuilt(target, options)).differences.map(({ check }) => check)).toContain('comments')
  await database.db.raw(`update comments set text = left(text, -1) where id = 2`)
  pod = await buildPod({ environment: environment() })
}, 180_000)

it('maps people, contacts and the rows that refer to them', async () => {
  const people = await rowsOf(
    'select id::int, address, pod_id::int as pod, closed_at is not null as closed, spotlight from people order by id',
  )
  expect(people).toEqual([
    { id: 11, address: 'alice@old.example', pod: null, closed: false, spotlight: true },
    { id: 12, address: 'bob@old.example', pod: null, closed: false, spotlight: false },
    { id: 13, address: 'carol@old.example', pod: null, closed: true, spotlight: false },
    { id: 14, address: 'dave@old.example', pod: null, closed: false, spotlight: false },
    { id: 15, address: 'erin@old.example', pod: null, closed: true, spotlight: false },
    { id: 21, address: 'rita@one.example', pod: 1, closed: false, spotlight: false },
    { id: 22, address: 'sven@two.example', pod: 2, closed: false, spotlight: false },
    { id: 23, address: 'tina@three.example:3000', pod: 3, closed: false, spotlight: false },
    { id: 26, address: 'ulla@four.example', pod: 6, closed: false, spotlight: false },
    { id: 27, address: 'mia@three.example:3000', pod: 3, closed: true, spotlight: false },
    { id: 28, address: 'mia@one.example', pod: 1, closed: false, spotlight: false },
  ])
  expect(
    await rowsOf('select host, port, status, blocked_at is not null as blocked, software from pods order by id'),
  ).toEqual([
    { host: 'one.example', port: 443, status: 'no_errors', blocked: false, software: 'diaspora' },
    { host: 'two.example', port: 443, status: 'net_failed', blocked: true, software: null },
    { host: 'three.example', port: 3000, status: 'unchecked', blocked: false, software: null },
    { host: 'four.example', port: 443, status: 'unchecked', blocked: false, software: null },
  ])
  expect(
    await rowsOf('select user_id::int as u, person_id::int as p, sharing, receiving from contacts order by id'),
  ).toEqual([
    { u: 1, p: 12, sharing: true, receiving: true },
    { u: 1, p: 21, sharing: true, receiving: true },
    { u: 2, p: 11, sharing: true, receiving: true },
  ])
  expect(await rowsOf('select name, position from aspects where user_id = 1 order by id')).toEqual([
    { name: 'Work', position: 1 },
    { name: 'work 2', position: 0 },
  ])
  const [alice] = await rowsOf('select birthday, image_url, bio, first_name from profiles where person_id = 11')
  expect(alice).toEqual({
    birthday: '1004-02-29',
    image_url: 'https://old.example/uploads/images/thumb_large_x.jpg',
    bio: ' a bio with\r\nlines ',
    first_name: 'Alice',
  })
  expect(
    await rowsOf('select first_name, image_url from profiles where person_id in (12, 21) order by person_id'),
  ).toEqual([
    { first_name: null, image_url: null },
    { first_name: 'Rita', image_url: null },
  ])
  expect(await rowsOf('select kind, delivery from mail_preferences where user_id = 1 order by kind')).toEqual([
    { kind: 'liked', delivery: 'never' },
    { kind: 'private_message', delivery: 'never' },
  ])
  expect(
    await rowsOf('select username, role, follow_back_aspect_id::int as aspect from users where id < 3 order by id'),
  ).toEqual([
    { username: 'alice', role: 'admin', aspect: 1 },
    { username: 'bob', role: 'moderator', aspect: null },
  ])
  expect(await rowsOf('select language from users order by id')).toEqual(
    ['de-formal', 'art', 'hye', 'zh-CN', 'en'].map((language) => ({ language })),
  )
})

it('maps posts, counts anew and keeps ids', async () => {
  const [first] = await rowsOf(
    'select created_at, comments_count as comments, likes_count as likes, reshares_count as reshares from posts where id = 101',
  )
  expect(first).toEqual({ created_at: new Date('2020-01-02T03:04:05.999Z'), comments: 5, likes: 2, reshares: 2 })
  expect(
    await rowsOf('select id::int, root_id::int as root from posts where type = ? order by id', ['Reshare']),
  ).toEqual([
    { id: 105, root: 101 },
    { id: 107, root: 101 },
  ])
  expect(await rowsOf(`select post_id::int as id from hidden_posts order by user_id, post_id`)).toEqual([
    { id: 112 },
    { id: 102 },
  ])
  expect(await rowsOf('select id::int, author_id::int as author from likes where post_id = 101 order by id')).toEqual([
    { id: 1, author: 12 },
    { id: 2, author: 21 },
    { id: 5, author: 22 },
  ])
  expect(await rowsOf('select name from tags order by name')).toEqual([{ name: 'foo' }, { name: 'tag' }])
  expect(await rowsOf('select id::int, superseded from notifications where type = ? order by id', ['liked'])).toEqual([
    { id: 1, superseded: true },
    { id: 2, superseded: true },
    { id: 3, superseded: false },
  ])
  expect(await rowsOf(`select count(*)::int as count from notifications where id in (7, 8)`)).toEqual([{ count: 0 }])
  expect(await rowsOf('select subject from conversations')).toEqual([{ subject: 'No subject' }])
  expect(await rowsOf(`select id::int, remote_path, name from photos order by id`)).toEqual([
    { id: 1, remote_path: null, name: 'x.JPG' },
    { id: 2, remote_path: null, name: 'y.jpg' },
    { id: 3, remote_path: 'https://one.example/uploads/images/', name: 'z.jpg' },
    { id: 4, remote_path: null, name: 'old.png' },
  ])
  expect(await rowsOf('select length(guid) as length from posts where id = 104')).toEqual([{ length: 32 }])
  expect(await rowsOf('select (created_at < now()) as past from posts where id = 111')).toEqual([{ past: true }])
  const [next] = await rowsOf(`select nextval(pg_get_serial_sequence('posts', 'id'))::int as id`)
  expect(next.id).toBeGreaterThan(901)
  expect(await rowsOf('select count(*)::int as count from outbox where name = ?', ['notify'])).toEqual([{ count: 0 }])
  expect(await rowsOf(`select target_type, state, report_count as reports from moderation_cases`)).toEqual([
    { target_type: 'post', state: 'open', reports: 1 },
  ])
})

it('stores the elements that an author has signed, in their order', async () => {
  const [comment] = await rowsOf(
    'select author_signature as signature, signed_elements as elements from comments where id = 2',
  )
  expect(comment.elements.map(([name]: string[]) => name)).toEqual([
    'author',
    'guid',
    'parent_guid',
    'text',
    'mood',
    'created_at',
  ])
  const text = comment.elements.map(([, value]: string[]) => value).join(';')
  const key = createPublicKey(old.publicKeys['rita'] ?? '')
  expect(verify('sha256', Buffer.from(text), key, Buffer.from(comment.signature, 'base64'))).toBe(true)
})

it('accepts old passwords and replaces their hashes', async () => {
  const hashOf = async (id: number) =>
    (await rowsOf('select password_hash as hash from user_secrets where user_id = ?', [id]))[0].hash
  expect(await signIn(pod.pod, 'alice', 'wrong password')).toBeUndefined()
  expect(await hashOf(1)).toMatch(/^\$2a\$/)
  const signedIn = await signIn(pod.pod, 'alice@mail.example', OLD_PASSWORD)
  expect(await signedIn?.isValid()).toBe(true)
  expect(await hashOf(1)).toMatch(/^\$argon2id\$/)
  expect(await signIn(pod.pod, 'alice', OLD_PASSWORD)).toBeDefined()
  for (const [password, pepper] of [
    ['sixsix', DIASPORA_PEPPER],
    ['🌻'.repeat(128), DIASPORA_PEPPER],
    ['of another pepper', 'pepper of this pod'],
  ] as const) {
    await database
      .db('user_secrets')
      .where({ userId: 1 })
      .update({ passwordHash: await bcryptOf(password, pepper) })
    await database.db('take_over').update({ sealedPepper: target.secrets.encrypt(DIASPORA_PEPPER, 'pepper') })
    expect((await signIn(pod.pod, 'alice', password)) !== undefined).toBe(pepper === DIASPORA_PEPPER)
    await database.db('take_over').update({ sealedPepper: target.secrets.encrypt(pepper, 'pepper') })
    expect(await signIn(pod.pod, 'alice', password)).toBeDefined()
  }
  await database.db('take_over').update({ sealedPepper: target.secrets.encrypt(DIASPORA_PEPPER, 'pepper') })
})

it('requires the second factor of old accounts, and accepts each code once', async () => {
  expect((await signIn(pod.pod, 'bob', OLD_PASSWORD))?.needsFactor).toBe(true)
  const { db, now } = pod.pod
  const check = (typed: string) => checkCode(pod.pod, 2, typed)
  expect(await check('f00dfeedcafe0124')).toBe('wrong')
  expect(await check('f00dfeedcafe0123')).toBe('right')
  expect(await check('f00dfeedcafe0123')).toBe('wrong')
  const step = Math.floor(now().getTime() / 30_000)
  const code = totpCode(readBase32('JBSWY3DPEHPK3PXP'), step)
  expect(findTotpStep('JBSWY3DPEHPK3PXP', code, now())).toBeDefined()
  expect(await check(code)).toBe('right')
  expect(await check(code)).toBe('wrong')
  expect((await findFactors(db, 2)).recoveryCodesLeft).toBe(0)
})

it('keeps closed and locked accounts out, and completes an interrupted closing', async () => {
  expect(await signIn(pod.pod, 'carol', OLD_PASSWORD)).toBeUndefined()
  expect(await signIn(pod.pod, 'dave', OLD_PASSWORD)).toBeUndefined()
  const webFinger = async (name: string) =>
    (await pod.inject(`/.well-known/webfinger?resource=acct:${name}@${OLD_HOST}`)).statusCode
  expect([await webFinger('carol'), await webFinger('dave')]).toEqual([404, 200])
  expect((await pod.inject(`/people/${guidOf('carol')}`)).statusCode).toBe(410)
  const messages = await rowsOf(`select record, sender_id::int as sender from outbound_messages`)
  expect(messages).toEqual([{ record: 'account_deletion', sender: 15 }])
})

it('publishes people with their guid and the text of their key', async () => {
  for (const name of ['alice', 'bob'] as const) {
    const card = await pod.inject(`/hcard/users/${guidOf(name)}`)
    expect(card.body).toContain(guidOf(name))
    expect(card.body.replaceAll(/\s/g, '')).toContain((old.publicKeys[name] ?? '').replaceAll(/\s/g, ''))
  }
})

it('serves public posts with a valid signature of their author', async () => {
  const answer = await pod.inject(`/fetch/post/${guidOf('post-101')}`)
  expect(answer.statusCode).toBe(200)
  const xml = answer.body
  const part = (name: string) => new RegExp(`<me:${name}[^>]*>([^<]*)<`).exec(xml)?.[1] ?? ''
  const type = /<me:data type="([^"]+)"/.exec(xml)?.[1] ?? ''
  const encode = (text: string) => Buffer.from(text).toString('base64url')
  const padded = (text: string) => `${text}${'='.repeat((4 - (text.length % 4)) % 4)}`
  const signed = [part('data'), ...[type, 'base64url', 'RSA-SHA256'].map((text) => padded(encode(text)))].join('.')
  const key = createPublicKey(old.publicKeys['alice'] ?? '')
  expect(verify('sha256', Buffer.from(signed), key, Buffer.from(part('sig'), 'base64url'))).toBe(true)
  expect(Buffer.from(part('data'), 'base64url').toString()).toContain('<created_at>2020-01-02T03:04:05Z</created_at>')
})

it('signs old comments of its users when they are first requested, and sends no unsigned ones', async () => {
  const elementOf = (body: string, name: string) => {
    const data = /<me:data[^>]*>([^<]*)</.exec(body)?.[1] ?? ''
    return new RegExp(`<${name}>([^<]*)</${name}>`).exec(Buffer.from(data, 'base64url').toString())?.[1] ?? ''
  }
  await database.db('comments').whereIn('id', [1, 3]).update({ authorSignature: null, signedElements: null })
  for (const [id, author, words] of [
    [1, 'bob', 'a local comment'],
    [3, 'carol', 'by Carol'],
  ] as const) {
    const answer = await pod.inject(`/fetch/comment/${guidOf(`comment-${id}`)}`)
    expect(answer.statusCode).toBe(200)
    const [kept] = await rowsOf('select author_signature as signature from comments where id = ?', [id])
    expect(elementOf(answer.body, 'author_signature')).toBe(kept.signature)
    const signed = [`${author}@${OLD_HOST}`, guidOf(`comment-${id}`), guidOf('post-101'), words].join(';')
    const text = Buffer.from(`${signed};${elementOf(answer.body, 'created_at')}`)
    const key = createPublicKey(old.publicKeys[author] ?? '')
    expect(verify('sha256', text, key, Buffer.from(kept.signature, 'base64'))).toBe(true)
    expect((await pod.inject(`/fetch/comment/${guidOf(`comment-${id}`)}`)).body).toBe(answer.body)
  }
  expect((await pod.inject(`/fetch/comment/${guidOf('comment-5')}`)).statusCode).toBe(404)
})

it('reports the accounts that still have a hash of the old pod after a year', async () => {
  const inDays = (days: number) => new Date(Date.now() + days * 86_400_000)
  expect(await checkTakeOver(database.db, inDays(364))).toEqual([])
  const [finding] = await checkTakeOver(database.db, inDays(366))
  expect(finding?.message).toContain('still have the bcrypt hash of the old pod: 1 (dave)')
})

it('keeps clients and tokens', async () => {
  const withToken = async (token: string) =>
    (await pod.inject({ url: '/api/v1/user', headers: { authorization: `Bearer ${token}` } })).statusCode
  expect(await withToken(old.secrets['accessToken'] ?? '')).not.toBe(401)
  expect([await withToken('a'.repeat(64)), await withToken('1'.repeat(64))]).toEqual([401, 401])
  expect(await rowsOf(`select scopes from authorizations where id = 1`)).toEqual([
    { scopes: ['openid', 'public:read'] },
  ])
  expect(
    await rowsOf('select id::int, api_dialect as dialect, secret_hash as hash from clients order by id limit 1'),
  ).toEqual([
    {
      id: 1,
      dialect: 'diaspora',
      hash: createHash('sha256')
        .update(old.secrets['clientSecret'] ?? '')
        .digest(),
    },
  ])
  expect(await rowsOf('select sector, subject from pairwise_subjects order by sector')).toEqual([
    { sector: 'app2.id://callback', subject: '0123456789abcdef0123456789abcdef' },
    { sector: 'app3.id://callback', subject: '0123456789abcdef0123456789abcdef' },
  ])
})

it('takes an old refresh token again and again, and only from its client', async () => {
  const refresh = (id: string) =>
    postForm(pod.app, '/api/openid_connect/access_tokens', {
      grant_type: 'refresh_token',
      refresh_token: old.secrets['refreshToken'] ?? '',
      client_id: id.repeat(32),
      client_secret: old.secrets['clientSecret'] ?? '',
    })
  const answers = [await refresh('1'), await refresh('1')]
  expect(answers.map(({ statusCode }) => statusCode)).toEqual([200, 200])
  for (const answer of answers) {
    const headers = { authorization: `Bearer ${answer.json().access_token}` }
    expect((await pod.inject({ url: '/api/v1/user', headers })).statusCode).not.toBe(401)
  }
  expect((await refresh('2')).statusCode).toBeGreaterThanOrEqual(400)
})

it('leads old numbers of public posts to their guids', async () => {
  for (const path of ['/posts/101', '/p/101']) {
    const answer = await pod.inject(path)
    expect([answer.statusCode, answer.headers.location]).toEqual([
      301,
      `https://${OLD_HOST}/posts/${guidOf('post-101')}`,
    ])
  }
  const remote = await pod.inject('/posts/106')
  expect([remote.statusCode, remote.headers.location]).toEqual([302, `https://one.example/posts/${guidOf('post-106')}`])
  const [hidden, unknown] = [await pod.inject('/posts/102'), await pod.inject('/posts/99999')]
  expect([hidden.statusCode, unknown.statusCode]).toEqual([404, 404])
  expect(hidden.body).toBe(unknown.body.replaceAll('99999', '102'))
})

it('serves old pictures under their names, and leaves the old folder as it was', async () => {
  const picture = await pod.inject('/uploads/images/thumb_large_x.JPG')
  expect([picture.statusCode, picture.headers['content-type'], picture.body]).toEqual([
    200,
    'image/jpeg',
    'bytes of thumb_large_x.JPG',
  ])
  const scan = await pod.inject('/uploads/images/scan.tiff')
  expect([scan.statusCode, scan.headers['content-disposition']]).toEqual([200, 'attachment'])
  expect((await pod.inject('/uploads/images/linked.jpg')).body).toBe('bytes of x.JPG')
  expect((await readdir(join(folder, 'old', 'images'))).sort()).toEqual([
    '.hidden',
    'folder',
    'linked.jpg',
    'scan.tiff',
    'thumb_large_x.JPG',
    'x.JPG',
  ])
})

it('keeps the issuer and the key of ID tokens', async () => {
  const configuration = (await pod.inject('/.well-known/openid-configuration')).json()
  expect([configuration.issuer, configuration.jwks_uri]).toEqual([
    `https://${OLD_HOST}/`,
    `https://${OLD_HOST}/api/openid_connect/jwks.json`,
  ])
  const { keys } = (await pod.inject('/api/openid_connect/jwks.json')).json()
  expect(keys).toMatchObject([{ kid: 'default', n: oldKey.publicKey.export({ format: 'jwk' }).n }])
  const { links } = (await pod.inject(`/.well-known/webfinger?resource=acct:alice@${OLD_HOST}`)).json()
  expect(links).toContainEqual({ rel: 'http://openid.net/specs/connect/1.0/issuer', href: `https://${OLD_HOST}/` })
})

it('drops the staging tables at the end', async () => {
  await finishTakeOver(target)
  expect(await rowsOf(`select state, to_regnamespace('take_over') is null as dropped from take_over`)).toEqual([
    { state: 'finished', dropped: true },
  ])
})
