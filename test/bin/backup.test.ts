import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { borrowDatabase } from '../../bin/borrow-database.js'
import { readConfig } from '../../src/config/config.js'
import { loadPrivateKey } from '../../src/domain/accounts/private-keys.js'
import { signIn } from '../../src/domain/accounts/sign-in.js'
import { openPassphraseRecipient } from '../../src/operations/backup/passphrase-identity.js'
import { openFolderRepository } from '../../src/operations/backup/repositories/folder-repository.js'
import { openDatabase } from '../../src/persistence/database/database.js'
import { WORKER_DATABASE_LIMITS } from '../../src/persistence/database/limits.js'
import { User } from '../../src/persistence/models/user.js'
import { openServices } from '../../src/services/open-services.js'
import { findProgram } from '../deploy/find-program.js'
import { rowsOf } from '../operations/backup-fixture.js'
import { openEmptyDatabase } from '../support/databases/test-database.js'
import { plain } from '../support/files/pictures.js'
import { fixedKeyCrypto } from '../support/pods/fixed-key-crypto.js'
import { makeFolder, pod, runOnTerminal, type Settings, start, startPod, until } from './program.js'

const PASSWORD = 'correct horse battery'

const script = await findProgram('script')

/** Printed by a command that takes longer than ten seconds. */
const PROGRESS = /^[\w ]+: .*\n/gm

async function json(words: readonly string[], settings: Settings) {
  const { code, stdout, stderr } = await pod([...words, '--json'], settings)
  expect({ words, code, stderr: stderr.replaceAll(PROGRESS, '') }).toEqual({ words, code: 0, stderr: '' })
  return JSON.parse(stdout)
}

/** All rows of the embedded database of a stopped pod. */
async function storedRows(settings: Settings) {
  const database = await borrowDatabase(readConfig(settings))
  const db = openDatabase({ ...WORKER_DATABASE_LIMITS, url: database.url, applicationName: 'test' })
  try {
    return await rowsOf(db)
  } finally {
    await db.destroy()
    await database.release()
  }
}

describe('pod backup on the embedded database', { timeout: 180_000 }, () => {
  let folder: Awaited<ReturnType<typeof makeFolder>>
  let dataDir: string
  let target: string
  let identity: string
  let settings: Settings

  beforeAll(async () => {
    folder = await makeFolder()
    dataDir = join(folder.path, 'data')
    target = join(folder.path, 'backups')
    identity = join(folder.path, 'identity.txt')
    const key = await pod(['backup', 'keygen'], {})
    writeFileSync(identity, key.stdout)
    const [, recipient = ''] = /public key: (age1\S+)/.exec(key.stdout) ?? []
    settings = { DATA_DIR: dataDir, BACKUP_TO: target, BACKUP_RECIPIENTS: recipient, BACKUP_AT: 'off' }
  })
  afterAll(() => folder.remove())

  it('restores a pod that was destroyed: rows, pictures, passwords and tokens', async () => {
    const before = await startPod(settings)
    await json(['user', 'create', 'alice', '--password', PASSWORD], settings)
    const { access_token: token } = await json(
      ['token', 'alice', '--scopes', 'public:read public:modify profile', '--expires-in', '1d'],
      settings,
    )
    const request = (address: string, path: string, init: RequestInit = {}) =>
      fetch(`${address}/api/v1${path}`, { ...init, headers: { ...init.headers, authorization: `Bearer ${token}` } })
    const posted = await request(before.address, '/posts', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ body: 'Kept in a backup #kept', public: true }),
    })
    const { guid } = (await posted.json()) as { guid: string }
    const form = new FormData()
    form.set('image', new Blob([new Uint8Array(await plain(300, 200).jpeg().toBuffer())]), 'picture.jpg')
    form.set('set_profile_photo', 'true')
    expect((await request(before.address, '/photos', { method: 'POST', body: form })).status).toBe(200)

    // What the worker writes about the post and the photo belongs to the backup.
    expect(await pod(['wait-idle'], settings)).toMatchObject({ code: 0 })
    const { id } = await json(['backup', 'create'], settings)
    expect(await json(['backup', 'list'], settings)).toMatchObject([{ id, complete: true, verified_at: null }])
    expect(await json(['backup', 'verify', id, '--identity', identity], settings)).toMatchObject({ faults: [] })
    expect(await json(['backup', 'list'], settings)).toMatchObject([{ id, verified_at: expect.any(String) }])
    before.child.kill('SIGTERM')
    await before.ended
    const rows = await storedRows(settings)
    const pictures = readdirSync(join(dataDir, 'uploads', 'images')).sort()
    const key = readFileSync(join(dataDir, 'secret-key'), 'utf8')
    await rename(dataDir, `${dataDir}-destroyed`)

    const restored = await json(['backup', 'restore', target, id, '--identity', identity], settings)

    expect(restored).toMatchObject({ id, pictures: pictures.length, lost_pictures: 0 })
    const again = await storedRows(settings)
    expect(Object.keys(again)).toEqual(Object.keys(rows))
    for (const [table, stored] of Object.entries(rows)) {
      // What runs periodically and what the requests after the backup wrote.
      if (!['periodic', 'access_tokens', 'outbox'].includes(table))
        expect({ table, rows: again[table] }).toEqual({ table, rows: stored })
    }
    expect(readdirSync(join(dataDir, 'uploads', 'images')).sort()).toEqual(pictures)
    expect(readFileSync(join(dataDir, 'secret-key'), 'utf8')).toBe(key)

    const after = await startPod(settings)
    const post = await request(after.address, `/posts/${guid}`)
    expect(await post.json()).toMatchObject({ body: 'Kept in a backup #kept' })
    const next = await request(after.address, '/posts', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ body: 'After the restore', public: true }),
    })
    expect(next.status).toBe(200)
    await signInAsAlice()

    const running = await pod(
      ['backup', 'restore', target, id, '--identity', identity, '--replace', '--confirm', 'localhost:3000'],
      settings,
    )
    expect(running).toMatchObject({ code: 1, stderr: expect.stringContaining('is running: stop it first') })
    after.child.kill('SIGTERM')
    await after.ended

    const elsewhere = { DATA_DIR: join(folder.path, 'elsewhere'), BACKUP_TO: target }
    const s3 = {
      S3_ENDPOINT: 'http://127.0.0.1:1',
      S3_BUCKET: 'pictures',
      S3_ACCESS_KEY_ID: 'k',
      S3_SECRET_ACCESS_KEY: 's',
    }
    const restoreTo = (store: string) => [
      'backup',
      'restore',
      target,
      id,
      '--identity',
      identity,
      '--pictures-to',
      store,
    ]
    expect(await pod(restoreTo('s3'), elsewhere)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('S3_BUCKET'),
    })
    const picturesFolder = join(folder.path, 'pictures')
    await json(restoreTo(picturesFolder), { ...elsewhere, ...s3, STORAGE: 's3' })
    expect(readdirSync(join(picturesFolder, 'images')).sort()).toEqual(pictures)

    const full = await pod(['backup', 'restore', target, id, '--identity', identity], settings)
    expect(full).toMatchObject({ code: 1, stderr: expect.stringContaining('the database has tables') })
    const unconfirmed = await pod(['backup', 'restore', target, id, '--identity', identity, '--replace'], settings, {
      input: 'another.example\n',
    })
    expect(unconfirmed).toMatchObject({ code: 1, stderr: expect.stringContaining('Nothing was changed') })
  })

  it('leaves no backup when it is killed, and the next one works', async () => {
    const elsewhere = join(folder.path, 'killed')
    const running = await startPod(settings)
    const images = join(dataDir, 'uploads', 'images')
    const [picture = ''] = readdirSync(images)
    await rename(join(images, picture), join(folder.path, picture))
    execFileSync('mkfifo', [join(images, picture)]) // whose reader waits
    const killed = start(['backup', 'create', '--to', elsewhere, '--json'], settings)
    await until(() => filesBelow(elsewhere).some((file) => file.includes('secret-key')))
    const second = await pod(['backup', 'create'], settings)
    killed.child.kill('SIGKILL')
    await killed.ended
    await rename(join(folder.path, picture), join(images, picture))

    expect(second).toMatchObject({ code: 1, stderr: expect.stringMatching(/is running already: .*, process \d+\./) })
    expect(await json(['backup', 'list', '--from', elsewhere], settings)).toEqual([])
    const { id } = await json(['backup', 'create', '--to', elsewhere], settings)
    expect(await json(['backup', 'list', '--from', elsewhere], settings)).toMatchObject([{ id, complete: true }])
    running.child.kill('SIGTERM')
    await running.ended
  })

  it('moves to another server, and back into an empty data folder', async () => {
    await using other = await openEmptyDatabase()
    const [user] = await json(['user', 'list'], settings)
    const copied = await json(['db', 'move', '--to', other.url], settings)
    expect(copied).toMatchObject({ tables: expect.any(Number), messages: 0 })

    const stale = await pod(['user', 'list'], settings)
    expect(stale).toMatchObject({ code: 1, stderr: expect.stringContaining('was moved to another server') })
    const external = { ...settings, DATABASE_URL: other.url }
    expect(await json(['user', 'list'], external)).toMatchObject([user])
    const refused = await pod(['db', 'move', '--to', 'embedded'], external)
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('has an embedded database already') })

    await rename(join(dataDir, 'postgres'), join(folder.path, 'old-postgres'))
    await json(['db', 'move', '--to', 'embedded'], external)
    expect(await json(['user', 'list'], settings)).toMatchObject([user])
  })

  it('encrypts with a typed passphrase; another one and a wrong identity end with status 1', async () => {
    const to = join(folder.path, 'with-passphrase')
    const phrase = { input: 'correct horse battery\n' }
    await openPassphraseRecipient(openFolderRepository(to), phrase.input.trim(), 10)
    const { BACKUP_RECIPIENTS: _, ...nobody } = settings

    const created = await pod(['backup', 'create', '--passphrase', '--to', to, '--json'], nobody, phrase)
    expect(created).toMatchObject({ code: 0, stderr: expect.stringContaining('Passphrase of the backups') })
    const { id } = JSON.parse(created.stdout)
    const verify = ['backup', 'verify', id, '--from', to]
    // As on a medium that can only be read.
    mkdirSync(join(to, 'backups', id, 'verified'))
    const verified = await pod([...verify, '--passphrase', '--json'], nobody, phrase)
    expect(JSON.parse(verified.stdout)).toMatchObject({ id, faults: [], decrypted: true })
    expect(verified.stderr).toContain(`The verification is not recorded, because ${to} cannot be written.`)
    expect(await pod([...verify, '--start'], nobody)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('encrypted with a passphrase: add --passphrase'),
    })
    expect(await pod([...verify, '--passphrase'], nobody, { input: 'correct horse staple\n' })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('The passphrase is not that of the backups.'),
    })
    expect(await pod([...verify, '--identity', identity], nobody)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('encrypted for another identity'),
    })
    expect(await pod([...verify, '--identity', identity, '--passphrase'], nobody)).toMatchObject({ code: 1 })
  })

  it('restores with a passphrase and the host, both from a pipe', async () => {
    const to = join(folder.path, 'with-passphrase')
    const [{ id }] = await json(['backup', 'list', '--from', to], settings)
    const elsewhere = { ...settings, DATA_DIR: join(folder.path, 'restored-with-passphrase') }
    const restore = ['backup', 'restore', to, id, '--passphrase']

    const restored = await pod([...restore, '--json'], elsewhere, { input: 'correct horse battery\n' })
    expect(JSON.parse(restored.stdout)).toMatchObject({ id, lost_pictures: 0 })
    const replaced = await pod([...restore, '--replace', '--json'], elsewhere, {
      input: 'correct horse battery\nlocalhost:3000\n',
    })
    expect({ code: replaced.code, ...JSON.parse(replaced.stdout) }).toMatchObject({
      ...{ code: 0, id },
      renamed: expect.arrayContaining([expect.stringMatching(/^replaced_/)]),
    })
    expect(await json(['user', 'list'], elsewhere)).toMatchObject([{ username: 'alice' }])
  })

  it.runIf(script)('prompts for a passphrase on a terminal, twice at first, and never shows it', async () => {
    const to = join(folder.path, 'typed')
    const { BACKUP_RECIPIENTS: _, ...nobody } = settings
    const create = (...answers: (readonly [string, string])[]) =>
      runOnTerminal(['backup', 'create', '--passphrase', '--to', to], nobody, answers)
    const [first, again] = ['Passphrase of the backups: ', 'Passphrase of the backups, again: ']

    const differing = await create([first, 'correct horse battery'], [again, 'correct horse staple'])
    expect(differing).toMatchObject({ code: 1, stdout: expect.stringContaining('The two passphrases differ.') })
    expect(filesBelow(to)).toEqual([])
    const interrupted = await create([first, 'correct\u0003'])
    expect(interrupted).toMatchObject({ code: 1, stdout: expect.stringContaining('Interrupted. Nothing was changed.') })

    const created = await create([first, 'correct horse battery'], [again, 'correct horse battery'])
    expect(created).toMatchObject({ code: 0, stdout: expect.stringContaining('is complete: ') })
    const [{ id }] = await json(['backup', 'list', '--from', to], settings)
    const elsewhere = { ...nobody, DATA_DIR: join(folder.path, 'restored-on-terminal') }
    const restored = await runOnTerminal(['backup', 'restore', to, id, '--passphrase'], elsewhere, [
      [first, 'correct horse battery'],
    ])
    expect(restored).toMatchObject({ code: 0, stdout: expect.stringContaining(`Backup ${id} is restored: `) })
    for (const { stdout } of [differing, interrupted, created, restored]) expect(stdout).not.toContain('correct')
  })

  it('is made once a day by a worker, with a process of its own', async () => {
    const to = join(folder.path, 'daily')
    // A pod without a backup of this day: a restored one has none of its own.
    const DATA_DIR = join(folder.path, 'restored-with-passphrase')
    const daily = { ...settings, DATA_DIR, BACKUP_TO: to, BACKUP_AT: '00:00' }
    const running = await startPod(daily)
    await until(() => filesBelow(to).some((file) => file.endsWith('manifest.json')))
    running.child.kill('SIGTERM')
    expect(await running.ended).toBe(0)

    const restarted = await startPod(daily)
    restarted.child.kill('SIGTERM')
    expect(await restarted.ended).toBe(0)
    expect(await json(['backup', 'list'], daily)).toMatchObject([{ complete: true }])
  })

  it('refuses a backup without recipient, without target, and without encryption unless confirmed', async () => {
    const { BACKUP_TO: _, ...nowhere } = settings
    const { BACKUP_RECIPIENTS: __, ...nobody } = settings

    expect(await pod(['backup', 'create'], nowhere)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('set BACKUP_TO'),
    })
    expect(await pod(['backup', 'create'], nobody)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('set BACKUP_RECIPIENTS'),
    })
    expect(await pod(['backup', 'create', '--plain'], nobody)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('add --yes'),
    })
    expect(await pod(['backup', 'verify', 'another'], settings)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('There is no complete backup another'),
    })
    const none = join(folder.path, 'none.txt')
    writeFileSync(none, 'AGE-SECRET-KEY-NONE\n')
    expect(await pod(['backup', 'verify', '20260101T000000Z-0000', '--identity', none], settings)).toMatchObject({
      code: 1,
    })
  })

  /** The password of alice is accepted, and her private key opens. */
  async function signInAsAlice(): Promise<void> {
    const database = await borrowDatabase(readConfig(settings))
    const config = readConfig({ ...settings, DATABASE_URL: database.url, LOG_LEVEL: 'silent' })
    const open = await openServices(config, 'command', { crypto: fixedKeyCrypto() })
    try {
      const user = await signIn(open, 'alice', PASSWORD)
      const { personId } = await User.byUsername(open.db, 'alice').throwIfNotFound()
      expect((await loadPrivateKey(open, personId)).type).toBe('private')
      expect(user).toBeDefined()
    } finally {
      await open.close()
      await database.release()
    }
  }
})

function filesBelow(path: string): readonly string[] {
  return existsSync(path) ? readdirSync(path, { recursive: true, encoding: 'utf8' }) : []
}
