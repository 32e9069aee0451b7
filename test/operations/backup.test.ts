import { spawn } from 'node:child_process'
import { generateKeyPairSync, randomBytes } from 'node:crypto'
import { once } from 'node:events'
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { Registry } from 'prom-client'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { checkBackups } from '../../bin/doctor/check-backups.js'
import { backUpBeforeMigrations } from '../../bin/start/backup-before-migrations.js'
import { readConfig } from '../../src/config/config.js'
import { issueToken } from '../../src/domain/accounts/account-tokens.js'
import { closeUser } from '../../src/domain/accounts/closing/close-now.js'
import { newGuid } from '../../src/domain/new-guid.js'
import { deleteMovedFiles } from '../../src/domain/photos/moved-files.js'
import { removeOrphanedFiles } from '../../src/domain/photos/orphaned-files.js'
import { listPhotoFiles } from '../../src/domain/photos/photos.js'
import type { Refusal } from '../../src/domain/refusals.js'
import { loadJob } from '../../src/jobs/outbox/load-job.js'
import { withBackupLock } from '../../src/operations/backup/backup-lock.js'
import { checkRestoredPod } from '../../src/operations/backup/check-restored-pod.js'
import { createBackup } from '../../src/operations/backup/create-backup.js'
import { deleteBackups } from '../../src/operations/backup/delete-backups.js'
import { generateBackupKey } from '../../src/operations/backup/encryption.js'
import { listBackups, recordVerification } from '../../src/operations/backup/list-backups.js'
import { type Manifest, newBackupId } from '../../src/operations/backup/manifest.js'
import { openPassphraseRecipient } from '../../src/operations/backup/passphrase-identity.js'
import { openRepository } from '../../src/operations/backup/repositories/repository.js'
import { openTarRepository } from '../../src/operations/backup/repositories/tar-repository.js'
import type { Restored } from '../../src/operations/backup/restore-backup.js'
import { verifyBackup } from '../../src/operations/backup/verify-backup.js'
import { registerBackupMetrics } from '../../src/operations/backup-metrics.js'
import { migrate, migrateTo, migrationStatus } from '../../src/persistence/database/migrate.js'
import { Photo } from '../../src/persistence/models/photo.js'
import { claimDailyBackup, recordForeignBackup } from '../../src/persistence/operations/backup-runs.js'
import { openServices } from '../../src/services/open-services.js'
import { buildApp } from '../../src/web/server/app.js'
import { photoHandlers } from '../../workers/handlers/photos.js'
import { testLog } from '../support/assertions/test-log.js'
import { addPost, countRows } from '../support/databases/rows.js'
import { openSmallDisk } from '../support/files/small-disk.js'
import { viewerOf } from '../support/people/local-users.js'
import { addRemotePerson } from '../support/people/remote-people.js'
import { fixedKeyCrypto } from '../support/pods/fixed-key-crypto.js'
import { startS3Store } from '../support/s3/s3-store.js'
import {
  type BackedUpPod,
  openRestorePlace,
  type RestorePlace,
  rowsOf,
  SECRET_KEY,
  schemaOf,
  startBackedUpPod,
} from './backup-fixture.js'

const PRIVATE_TEXT = 'A text that only friends may read'
/** Each would end a row or a column, or would not be text, if it was not escaped. */
const HARD_TEXTS = ['\\N', '\\.', 'a\tb', 'a\nb', 'a\r\nb', '\\', '\\n', '\b\f\v', 'ä€😀', '', '  ', '{"a": "\\u0041"}']

const uninterrupted = { signal: new AbortController().signal, report: () => undefined }

/** Local photos in the database and their files. */
async function addPhotos({ pod, uploadsDir }: BackedUpPod, authorId: number, count: number): Promise<string[]> {
  mkdirSync(join(uploadsDir, 'images'), { recursive: true })
  const names = Array.from({ length: count }, () => `${newGuid()}.jpg`)
  for (const name of names) {
    await Photo.query(pod.db).insert({ guid: newGuid(), authorId, name, public: true, pending: false })
    for (const file of listPhotoFiles(name)) writeFileSync(join(uploadsDir, 'images', file), randomBytes(500))
  }
  return names
}

async function viewers(source: BackedUpPod) {
  const { ann, ben } = await source.people('ann', 'ben')
  return { ann: await viewerOf(source.pod, ann), ben: await viewerOf(source.pod, ben) }
}

function newPublicKey(): string {
  return generateKeyPairSync('rsa', { modulusLength: 1024 })
    .publicKey.export({ type: 'spki', format: 'pem' })
    .toString()
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort()
}

describe('a backup', { timeout: 60_000 }, () => {
  let source: BackedUpPod
  let manifest: Manifest

  beforeAll(async () => {
    source = await startBackedUpPod()
    const { db } = source.pod
    const { ann, ben } = await viewers(source)
    const remote = await addRemotePerson(source.pod, 'quin@q.example')
    await addPhotos(source, ann.personId, 3)
    // Files of people who have moved away, one of which is deleted already.
    const [moved, deleted] = await addPhotos(source, remote.id, 2)
    await db('photos')
      .whereIn('name', [moved ?? '', deleted ?? ''])
      .update({ remotePath: 'https://q.example/' })
    await db('moved_photo_files').where({ name: deleted }).update({ deletedAt: new Date() })
    for (const file of listPhotoFiles(deleted ?? '')) rmSync(join(source.uploadsDir, 'images', file))
    for (const text of HARD_TEXTS) {
      const post = await addPost(source.pod, { id: ann.personId })
      await db('posts').where({ id: post.id }).update({ text })
      await db('comments').insert({ guid: newGuid(), postId: post.id, authorId: remote.id, text: `${text}.` })
    }
    const large = await addPost(source.pod, { id: ben.personId })
    await db('posts')
      .where({ id: large.id })
      .update({ text: '\\\t'.repeat(2 ** 21) })
    const hidden = await addPost(source.pod, { id: ben.personId })
    await db('posts').where({ id: hidden.id }).update({ text: PRIVATE_TEXT, public: false })
    // An id that was given away and is free again.
    const gone = await addPost(source.pod, { id: ann.personId })
    await db('posts').where({ id: gone.id }).delete()
    await db.raw(`insert into last_writes (user_id, position, noted_at) select id, 1, now() from users`)
    await db.raw(`insert into figures values (date_trunc('minute', now()), 'test', '{}', 1)`)
    manifest = await source.backUp({ pieceBytes: 2_000 })
  })
  afterAll(() => source.close())

  it('leaves out unlogged tables, figures and sessions', () => {
    const names = manifest.tables.map(({ name }) => name)

    expect(names).toContain('posts')
    for (const name of ['last_writes', 'figures', 'oidc_records', 'idempotency_keys', 'backup_runs']) {
      expect(names).not.toContain(name)
    }
  })

  describe('that was restored', () => {
    let place: RestorePlace
    let restored: Restored
    let settings: NodeJS.ProcessEnv

    beforeAll(async () => {
      place = await openRestorePlace()
      restored = await place.restore(manifest, { repository: source.repository, identities: [source.identity] })
      settings = {
        POD_URL: 'https://pod.example',
        DATA_DIR: place.dataDir,
        DATABASE_URL: place.url,
        LOG_LEVEL: 'silent',
      }
    })
    afterAll(() => place[Symbol.asyncDispose]())

    it('has every row, picture, key, index and trigger', async () => {
      expect(await rowsOf(place.db)).toEqual(await rowsOf(source.pod.db))
      expect(await schemaOf(place.db)).toEqual(await schemaOf(source.pod.db))
      const pictures = readdirSync(join(place.uploadsDir, 'images'))
      expect(pictures.sort()).toEqual(readdirSync(join(source.uploadsDir, 'images')).sort())
      for (const file of pictures) {
        const [one, other] = [place, source].map(({ uploadsDir }) => readFileSync(join(uploadsDir, 'images', file)))
        expect(one?.equals(other ?? Buffer.alloc(0))).toBe(true)
      }
      expect(restored).toMatchObject({ rows: manifest.rows, pictures: pictures.length, lostPictures: 0, renamed: [] })
      expect(manifest.tables.find(({ name }) => name === 'posts')?.parts.length).toBeGreaterThan(1)
    })

    it('has its counters, so that new rows get ids above all old ones', async () => {
      const { rows } = await source.pod.db.raw(
        `select last_value as last from pg_sequences where sequencename = 'posts_id_seq'`,
      )

      const post = await addPost(place, { id: 1 })

      expect(post.id).toBe(rows[0].last + 1)
    })

    it('opens as a pod, with the secret key in the data folder', async () => {
      const pod = await openServices(readConfig(settings), 'command', { crypto: fixedKeyCrypto() })
      await pod.close()

      expect(readFileSync(join(place.dataDir, 'secret-key'), 'utf8')).toBe(SECRET_KEY)
    })

    it('is started as an isolated copy, whose pages and keys are checked; no request leaves it', async () => {
      const config = readConfig({ ...settings, ISOLATED: 'true' })
      const pod = await openServices(config, 'command', { crypto: fixedKeyCrypto() })
      try {
        const photoIds = await place.db('photos').pluck('id')
        expect(await checkRestoredPod(pod, photoIds)).toEqual([])
        await expect(pod.remotePods.get('https://other.example/', { maxBytes: 1 })).rejects.toThrow('isolated')
        await expect(pod.remotePods.post('https://other.example/', 'text/plain', '')).rejects.toThrow('isolated')
        const app = await buildApp(pod)
        const pages = await Promise.all(['/', '/users/sign_in', '/health/ready'].map((url) => app.inject(url)))
        await app.close()
        expect(pages.map(({ body }) => /This copy of the pod is isolated|"isolated":true/.test(body))).toEqual([
          true,
          true,
          true,
        ])
        expect(config.workerQueues).toEqual(['inbound', 'inbound-private', 'notify', 'photos'])

        await place.db('people').where({ address: 'ben@pod.example' }).update({ publicKey: newPublicKey() })
        for (const file of readdirSync(join(place.uploadsDir, 'images'))) rmSync(join(place.uploadsDir, 'images', file))
        expect(await checkRestoredPod(pod, photoIds)).toEqual([
          expect.stringMatching(/^\/uploads\/images\/.* is answered with 404\.$/),
          expect.stringMatching(/^The private key of user \d+ does not fit the public key\.$/),
        ])
      } finally {
        await pod.close()
      }
    })
  })

  it('made by an older version than that of the tables is restored by the newer version only', async () => {
    const { db } = source.pod
    const newer = { name: '9999_newer', batch: 1, migrationTime: new Date() }
    await db('knex_migrations').insert(newer)
    await db.raw('alter table posts add column newer integer')
    try {
      const made = await source.backUp()
      await using place = await openRestorePlace()

      const restoring = place.restore(made, { repository: source.repository, identities: [source.identity] })

      await expect(restoring).rejects.toThrow('newer than this program')
      expect(made.migrations.at(-1)).toBe(newer.name)
    } finally {
      await db.raw('alter table posts drop column newer')
      await db('knex_migrations').where({ name: newer.name }).delete()
    }
  })

  it('holds no address, name, key or text that can be read without the identity', () => {
    for (const file of filesBelow(source.repositoryFolder)) {
      const content = readFileSync(file).toString('latin1')
      for (const secret of ['ann@pod.example', 'quin@q.example', PRIVATE_TEXT, SECRET_KEY, '.jpg', 'PRIVATE KEY']) {
        expect({ file, found: content.includes(secret) || file.includes(secret) }).toEqual({ file, found: false })
      }
    }
  })

  it('is refused for another identity, another host, another key, and a newer version; nothing is written', async () => {
    await using place = await openRestorePlace()
    const { repository, identity } = source
    const other = await generateBackupKey()
    const restore = (changed: Manifest, options: object) =>
      place.restore(changed, { repository, identities: [identity], ...options })

    await expect(restore(manifest, { identities: [other.identity] })).rejects.toThrow('another identity')
    await expect(restore(manifest, { host: 'other.example' })).rejects.toThrow('set POD_URL')
    await expect(restore(manifest, { secretKey: 'another key that is only good for tests' })).rejects.toThrow(
      'SECRET_KEY',
    )
    const newer = { ...manifest, migrations: [...manifest.migrations, '9999-later'] }
    await expect(restore(newer, {})).rejects.toThrow('newer than this program')

    const { rows } = await place.db.raw(
      `select from pg_class where relnamespace = 'public'::regnamespace and relkind = 'r'`,
    )
    expect(rows).toEqual([])
    expect(readdirSync(place.dataDir)).toEqual([])
  })

  it('is refused for a database with tables; with replace these get another schema', { timeout: 180_000 }, async () => {
    await using place = await openRestorePlace()
    const { repository, identity } = source
    const options = { repository, identities: [identity], secretKey: SECRET_KEY }
    await place.restore(manifest, options)
    await place.db('posts').where({ text: PRIVATE_TEXT }).update({ text: 'Written later' })
    const before = await rowsOf(place.db)

    await expect(place.restore(manifest, options)).rejects.toThrow('the database has tables')
    expect(await rowsOf(place.db)).toEqual(before)

    const { renamed } = await place.restore(manifest, { ...options, replace: true })
    expect(await rowsOf(place.db)).toEqual(await rowsOf(source.pod.db))
    const kept = await place.db
      .withSchema(renamed[0] ?? '')
      .from('posts')
      .where({ text: 'Written later' })
    expect(kept).toHaveLength(1)
    expect(readdirSync(place.uploadsDir)).toContainEqual(expect.stringMatching(/^images\.replaced-/))
  })

  it('whose restore is interrupted at any step blocks the start of the pod until it is repeated', async () => {
    await using place = await openRestorePlace()
    const { repository, identity } = source
    const options = { repository, identities: [identity] }
    const config = readConfig({
      POD_URL: 'https://pod.example',
      DATABASE_URL: place.url,
      DATA_DIR: place.dataDir,
      LOG_LEVEL: 'silent',
    })

    for (const [last, replace] of [
      ['tables', false],
      ['indexes and keys', true],
      ['pictures', false],
    ] as const) {
      const interruption = new AbortController()
      const report = ({ step }: { readonly step: string }) => {
        if (step === last) interruption.abort()
      }
      await expect(
        place.restore(manifest, { ...options, replace, signal: interruption.signal, report }),
      ).rejects.toThrow('aborted')
      // It would make a secret key, if the restore had not written that of the backup.
      await expect(openServices(config, 'command', { crypto: fixedKeyCrypto() })).rejects.toThrow(
        `unfinished restore of backup ${manifest.id}`,
      )
    }

    expect(await place.restore(manifest, { ...options, replace: true })).toMatchObject({ renamed: [] })
    expect(await rowsOf(place.db)).toEqual(await rowsOf(source.pod.db))
    expect(readFileSync(join(place.dataDir, 'secret-key'), 'utf8')).toBe(SECRET_KEY)
  }, 120_000)
})

describe('the repository', () => {
  let source: BackedUpPod

  beforeEach(async () => {
    source = await startBackedUpPod()
    const { ann } = await viewers(source)
    await addPhotos(source, ann.personId, 2)
  })
  afterEach(() => source.close())

  const verify = (manifest: Manifest, identities?: readonly string[]) =>
    verifyBackup(manifest, { repository: source.repository, identities, ...uninterrupted })

  it('stores each picture once', async () => {
    const { ann } = await viewers(source)
    await source.backUp()
    const before = filesBelow(join(source.repositoryFolder, 'pictures'))
    await addPhotos(source, ann.personId, 1)

    const second = await source.backUp()

    const added = filesBelow(join(source.repositoryFolder, 'pictures')).filter((file) => !before.includes(file))
    expect(added).toHaveLength(listPhotoFiles('').length)
    expect(second.pictures.count).toBe(before.length + added.length)
    expect(second.bytes - second.bytes_new).toBeGreaterThan(before.length * 500)
    expect(await verify(second, [source.identity])).toEqual([])
  })

  it('stores a picture again that was lost', async () => {
    await source.backUp()
    const [lost = ''] = filesBelow(join(source.repositoryFolder, 'pictures'))
    rmSync(lost)

    const second = await source.backUp()

    expect(filesBelow(join(source.repositoryFolder, 'pictures'))).toContain(lost)
    expect(await verify(second)).toEqual([])
  })

  it('never writes a picture again, also after a backup for others or with references', async () => {
    const first = await source.backUp()
    const stored = filesBelow(join(source.repositoryFolder, 'pictures')).map((file) => readFileSync(file).length)
    const other = await generateBackupKey()
    const others = await source.backUp({ recipients: [other.recipient] })
    await createBackup(
      { ...source.pod, config: { ...source.pod.config, backupPictures: 'reference' } },
      { repository: source.repository, recipients: [source.recipient], settings: [], ...uninterrupted },
    )

    const last = await source.backUp()

    expect(last.pictures.sha256).toBe(first.pictures.sha256)
    expect(last.bytes - last.bytes_new).toBe(stored.reduce((sum, bytes) => sum + bytes, 0))
    expect(await verify(first, [source.identity])).toEqual([])
    expect(await verify(others, [other.identity])).toEqual([])
  })

  it('keeps the pictures of an interrupted run and of older backups', async () => {
    const interruption = new AbortController()
    const report = ({ step, done }: { readonly step: string; readonly done: number }) => {
      if (step === 'photos' && done === 0) interruption.abort()
    }
    await expect(source.backUp({ signal: interruption.signal, report })).rejects.toThrow('aborted')
    const pictures = join(source.repositoryFolder, 'pictures')
    const left = filesBelow(pictures).map((file) => [file, readFileSync(file)] as const)

    const first = await source.backUp()

    expect(left).toHaveLength(first.pictures.count / 2)
    for (const [file, content] of left) expect(readFileSync(file).equals(content)).toBe(true)
    // A backup that was made while nothing had a file.
    const folders = [pictures, join(source.uploadsDir, 'images')]
    for (const folder of folders) renameSync(folder, `${folder} elsewhere`)
    expect((await source.backUp()).pictures.count).toBe(0)
    for (const folder of folders) renameSync(`${folder} elsewhere`, folder)
    const last = await source.backUp()
    expect(last.pictures.count).toBe(first.pictures.count)
    expect(await verify(first, [source.identity])).toEqual([])
  })

  it('keeps a complete backup whose result cannot be recorded', async () => {
    const { db } = source.pod
    await db.raw(
      `create function refuse() returns trigger language plpgsql as 'begin raise exception ''read only''; end'`,
    )
    await db.raw('create trigger refuse before update on backup_runs for each row execute function refuse()')

    const manifest = await source.backUp()

    expect(await listBackups(source.repository)).toMatchObject([{ manifest: { id: manifest.id }, complete: true }])
  })

  it('is verified with and without the identity', async () => {
    const manifest = await source.backUp()

    expect(await verify(manifest)).toEqual([])
    expect(await verify(manifest, [source.identity])).toEqual([])
    const other = await generateBackupKey()
    await expect(verify(manifest, [other.identity])).rejects.toThrow('another identity')
  })

  it('reports a changed bit and a missing file by name, with and without the identity', async () => {
    const manifest = await source.backUp()
    const part = manifest.tables.flatMap(({ parts }) => parts).find(({ path }) => path.includes('people.'))?.path ?? ''
    const bytes = readFileSync(join(source.repositoryFolder, part))
    bytes[bytes.length - 20] = (bytes.at(-20) ?? 0) ^ 1
    writeFileSync(join(source.repositoryFolder, part), bytes)
    const [picture = ''] = filesBelow(join(source.repositoryFolder, 'pictures'))
    rmSync(picture)
    const otherPart = manifest.inbound.path
    const otherBytes = readFileSync(join(source.repositoryFolder, otherPart), 'latin1')
    // The recipient in the header of the file.
    writeFileSync(
      join(source.repositoryFolder, otherPart),
      otherBytes.replace(/X25519 ...../, 'X25519 AAAAA'),
      'latin1',
    )

    for (const identities of [undefined, [source.identity]]) {
      const faults = await verify(manifest, identities)
      expect(faults).toHaveLength(3)
      for (const path of [part, otherPart]) expect(faults).toContainEqual(expect.stringContaining(`${path}:`))
      expect(faults).toContainEqual(expect.stringContaining(picture.replace(`${source.repositoryFolder}/`, '')))
    }
  })

  it('does not read files without an end', async () => {
    const manifest = await source.backUp()
    const [picture = '', longer = ''] = filesBelow(join(source.repositoryFolder, 'pictures'))
    rmSync(picture)
    symlinkSync('/dev/zero', picture)
    truncateSync(longer, 2 ** 36) // takes no space, and minutes to read
    const part = manifest.inbound.path
    rmSync(join(source.repositoryFolder, part))
    symlinkSync('/dev/zero', join(source.repositoryFolder, part))

    const nameOf = (path: string) => path.replace(`${source.repositoryFolder}/`, '')
    for (const identities of [undefined, [source.identity]]) {
      const faults = await verify(manifest, identities)
      expect(faults).toHaveLength(3)
      for (const path of [part, nameOf(picture), nameOf(longer)]) {
        expect(faults).toContainEqual(expect.stringContaining(`${path}: `))
      }
      if (identities === undefined) expect(faults.join()).toMatch(/(.*the file has more than){3}/)
    }
  })

  it('refuses the manifest of another backup and a changed one', async () => {
    const [one, other] = [await source.backUp(), await source.backUp()]
    const at = ({ id }: Manifest) => join(source.repositoryFolder, 'backups', id, 'manifest.json')
    const text = readFileSync(at(one), 'utf8')

    writeFileSync(at(one), readFileSync(at(other), 'utf8'))
    await expect(listBackups(source.repository)).rejects.toThrow(
      `${one.id}/manifest.json belongs to the backup ${other.id}`,
    )
    writeFileSync(at(one), text.replace('pod.example', 'pod.exampla'))
    await expect(listBackups(source.repository)).rejects.toThrow(`${one.id}/manifest.json was changed`)

    const damaged: string[] = []
    const listed = await listBackups(source.repository, ({ message }) => damaged.push(message))
    expect(listed.map(({ manifest }) => manifest.id)).toEqual([other.id])
    expect(damaged).toEqual([expect.stringContaining(`${one.id}/manifest.json was changed`)])
    const forget = deleteBackups(
      source.repository,
      { daily: 1, weekly: 0, monthly: 0 },
      { dryRun: true, ...uninterrupted },
    )
    await expect(forget).rejects.toThrow(/^No backup is removed: .*was changed\. Remove the folder of this backup\.$/)
  })

  it('reports a changed or lost identity of a passphrase, without the passphrase', async () => {
    const { recipient, identity } = await openPassphraseRecipient(source.repository, 'correct horse battery', 10)
    const manifest = await source.backUp({ recipients: [recipient], passphraseIdentity: identity })
    const file = join(source.repositoryFolder, identity.path)
    expect(await verify(manifest)).toEqual([])

    const bytes = readFileSync(file)
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1
    writeFileSync(file, bytes)
    expect(await verify(manifest)).toEqual(['passphrase-identity.age: the file was changed.'])
    rmSync(file)
    expect(await verify(manifest)).toEqual([expect.stringMatching(/^passphrase-identity\.age is missing/)])
    expect((await listBackups(source.repository)).map(({ complete }) => complete)).toEqual([false])
  })

  it('lists finished backups only, and removes old unfinished ones with the next backup', async () => {
    const { id } = await source.backUp()
    const left = ['20200101T000000Z-0000', '20990101T000000Z-0000'].map((each) =>
      join(source.repositoryFolder, 'backups', each),
    )
    for (const folder of left) mkdirSync(folder)
    writeFileSync(join(left[0] ?? '', 'posts.1.gz.age'), 'unfinished')

    expect((await listBackups(source.repository)).map(({ manifest }) => manifest.id)).toEqual([id])
    await source.backUp()

    expect(readdirSync(join(source.repositoryFolder, 'backups'))).not.toContain('20200101T000000Z-0000')
    expect(readdirSync(join(source.repositoryFolder, 'backups'))).toContain('20990101T000000Z-0000')
  })

  it('ids of backups sort by time within a second, too', () => {
    const times = [0, 1, 15, 16, 500, 998, 999].map(
      (milliseconds) => new Date(Date.UTC(2026, 6, 31, 3, 30, 0, milliseconds)),
    )
    const ids = times.map((time) => newBackupId(time))

    expect(ids.toSorted()).toEqual(ids)
    for (const id of ids) expect(id).toMatch(/^20260731T033000Z-[0-9a-f]{4}$/)
  })

  it('refuses a second backup at the same time, and names the first', async () => {
    const second: Promise<unknown>[] = []
    const first = await source.backUp({
      report: () => {
        if (second.length === 0) second.push(source.backUp().catch((error: unknown) => error))
      },
    })

    expect(await second[0]).toMatchObject({
      message: expect.stringContaining(`is running already: ${first.id}, begun at`),
    })
    expect((await listBackups(source.repository)).map(({ manifest }) => manifest.id)).toEqual([first.id])
  })

  it('has no backup of a run that was interrupted, and the next run works', async () => {
    const interruption = new AbortController()
    const interrupted = source.backUp({ signal: interruption.signal, report: () => interruption.abort() })

    await expect(interrupted).rejects.toThrow('aborted')
    expect(await listBackups(source.repository)).toEqual([])

    const { id } = await source.backUp()
    expect((await listBackups(source.repository)).map(({ manifest }) => manifest.id)).toEqual([id])
    const runs = await source.pod.db('backup_runs').orderBy('startedAt')
    expect(runs).toMatchObject([{ fault: expect.any(String) }, { fault: null, endedAt: expect.any(Date) }])
  })

  it('has the pictures of a photo that is deleted in the meantime; afterwards the pod deletes them', async () => {
    const { db, config } = source.pod
    const photo = await Photo.query(db).whereNull('remotePath').first().throwIfNotFound()
    const files = listPhotoFiles(photo.name).map((file) => join(source.uploadsDir, 'images', file))
    const remove = async () => {
      const [row] = await db('outbox').where({ name: 'remove-photo-files' }).select('id', 'data')
      const work = { ...(await loadJob(db, { outboxId: row.id })), data: row.data } as never
      return photoHandlers['remove-photo-files']({ ...source.pod, config }, work, uninterrupted.signal).then(
        () => 'removed',
        (error: Error) => error.name,
      )
    }
    const removeOld = () =>
      removeOrphanedFiles(db, source.pod.pictures, {
        ...{ now: new Date(Date.now() + 8 * 86_400_000), dryRun: false, signal: uninterrupted.signal },
      }).then(
        () => 'removed',
        (error: Refusal) => error.reason,
      )
    const [moved = ''] = await addPhotos(source, photo.authorId, 1)
    await db('photos').where({ name: moved }).update({ remotePath: 'https://q.example/' })
    await db('moved_photo_files').update({ movedAt: db.raw(`now() - interval '91 days'`) })
    const removeMoved = async () =>
      `${await deleteMovedFiles(db, source.pod.pictures, { milliseconds: 10_000, signal: uninterrupted.signal })} removed`
    const during: Promise<string>[] = []
    const { repository } = source
    const manifest = await source.backUp({
      repository: {
        ...repository,
        write: async (path, bytes) => {
          if (path.endsWith('manifest.json')) await Promise.all(during)
          return repository.write(path, bytes)
        },
      },
      report: ({ step }) => {
        if (step === 'photos' && during.length === 0) {
          during.push(Photo.query(db).deleteById(photo.id).then(remove), removeOld(), removeMoved())
        }
      },
    })

    expect(await Promise.all(during)).toEqual(['Postponed', 'backup_running', '0 removed'])
    expect(manifest.pictures).toMatchObject({ count: 3 * files.length, missing: 0 })
    expect(files.map((file) => existsSync(file))).not.toContain(false)
    expect([await remove(), await removeMoved()]).toEqual(['removed', '1 removed'])
    expect(files.map((file) => existsSync(file))).not.toContain(true)
  })

  it('closes accounts again that were closed after the backup, as a later one lists them, without sending', async () => {
    const { ann, ben } = await source.people('ann', 'ben')
    const before = await source.backUp()
    await closeUser(source.pod, ben.account.username)
    const { recipient } = await generateBackupKey()
    const next = await source.backUp()
    await source.backUp({ recipients: [recipient] }) // the identity of the restore does not open this one
    await using place = await openRestorePlace()

    const restored = await place.restore(before, {
      repository: source.repository,
      identities: [source.identity],
      secretKey: SECRET_KEY,
    })

    expect(restored.closedAgain).toBe(1)
    expect(await place.db('users').whereNotNull('closedAt').pluck('username')).toEqual([ben.account.username])
    expect(await place.db('users').whereNull('closedAt').pluck('username')).toEqual([ann.account.username])
    expect(await place.db('outbox').where({ name: 'dispatch' })).toEqual([])
    expect(await verify(next, [source.identity])).toEqual([])
    const part = next.closed_accounts?.path ?? ''
    writeFileSync(join(source.repositoryFolder, part), 'changed')
    expect(await verify(next)).toContainEqual(expect.stringContaining(part))
  })

  it('ends links in mails and waiting sign-ins when it is restored, and tokens of applications on demand', async () => {
    const { db } = source.pod
    const { userId } = (await viewers(source)).ann
    await issueToken(db, { userId, purpose: 'password_reset', email: null })
    const expiresAt = new Date(Date.now() + 60_000)
    await db('second_steps').insert({ idHash: randomBytes(32), userId, expiresAt })
    const manifest = await source.backUp()
    const { repository, identity } = source
    const countsAfter = async (shouldEndTokens: boolean) => {
      await using place = await openRestorePlace()
      await place.restore(manifest, { repository, identities: [identity], secretKey: SECRET_KEY, shouldEndTokens })
      return await countRows(place, ['account_tokens', 'second_steps', 'authorizations', 'access_tokens'])
    }

    expect(await countRows(source.pod, ['account_tokens', 'second_steps', 'access_tokens'])).toEqual([1, 1, 2])
    expect(await countsAfter(false)).toEqual([0, 0, 2, 2])
    expect(await countsAfter(true)).toEqual([0, 0, 0, 0])
  })

  it('deletes old backups and the pictures that only they have, never the newest', async () => {
    const [first, second] = [await source.backUp(), await source.backUp()]
    const photo = await Photo.query(source.pod.db).whereNull('remotePath').first().throwIfNotFound()
    await Photo.query(source.pod.db).deleteById(photo.id)
    const third = await source.backUp()
    const before = filesBelow(source.repositoryFolder)
    const forget = (dryRun: boolean) =>
      deleteBackups(source.repository, { daily: 1, weekly: 0, monthly: 0 }, { dryRun, signal: uninterrupted.signal })
    const expected = {
      kept: [third.id],
      deleted: [first.id, second.id].sort(),
      pictures: listPhotoFiles(photo.name).length,
    }

    expect(await forget(true)).toEqual(expected)
    expect(filesBelow(source.repositoryFolder)).toEqual(before)
    expect(await forget(false)).toEqual(expected)

    expect((await listBackups(source.repository)).map(({ manifest }) => manifest.id)).toEqual([third.id])
    expect(await verify(third, [source.identity])).toEqual([])
    expect(filesBelow(join(source.repositoryFolder, 'pictures'))).toHaveLength(third.pictures.count)
    expect(await forget(false)).toEqual({ kept: [third.id], deleted: [], pictures: 0 })
  })

  it('has metrics once there is a place for backups', async () => {
    const registry = new Registry()
    const { db, log, config } = source.pod
    registerBackupMetrics(registry, { db, log, config: { ...config, backupTo: source.repositoryFolder } })
    expect(await registry.metrics()).toMatch(/^pod_backup_failures_total 0$/m)
    expect(await registry.metrics()).not.toMatch(/^pod_backup_age_seconds \d/m)

    const manifest = await source.backUp()
    await source.backUp({ recipients: ['age1wrong'] }).catch(() => undefined)

    await recordVerification(source.repository, manifest.id, new Date())
    const registryOfNextStart = new Registry()
    registerBackupMetrics(registryOfNextStart, { db, log, config: { ...config, backupTo: source.repositoryFolder } })
    expect(await registry.metrics()).not.toMatch(/^pod_backup_verified_age_seconds \d/m)
    expect(await registryOfNextStart.metrics()).toMatch(/^pod_backup_verified_age_seconds \d/m)
    const text = await registry.metrics()
    expect(text).toMatch(/^pod_backup_age_seconds \d/m)
    expect(text).toMatch(/^pod_backup_duration_seconds \d/m)
    expect(text).toMatch(new RegExp(`^pod_backup_bytes ${manifest.bytes}$`, 'm'))
    expect(text).toMatch(/^pod_backup_failures_total 1$/m)

    const without = new Registry()
    registerBackupMetrics(without, { db, log, config: { ...config, backupTo: undefined } })
    expect(await without.metrics()).not.toMatch(/^pod_backup_\w+ \d/m)

    await recordForeignBackup(
      db,
      { tool: 'pgbackrest', at: new Date(), bytes: 5_000_000_000, isVerified: true },
      new Date(),
    )
    const recorded = await without.metrics()
    expect(recorded).toMatch(/^pod_backup_age_seconds \d/m)
    expect(recorded).toMatch(/^pod_backup_bytes 5000000000$/m)
    expect(recorded).toMatch(/^pod_backup_verified_age_seconds \d/m)
    expect(recorded).not.toMatch(/^pod_backup_failures_total/m)
  })

  it('is due once after its time among all workers, and again an hour after a run that failed', async () => {
    const { db } = source.pod
    const claim = (at = '00:00') => claimDailyBackup(db, at)

    expect((await Promise.all([claim(), claim(), claim()])).filter(Boolean)).toHaveLength(1)
    await source.backUp({ recipients: ['age1wrong'] }).catch(() => undefined)
    expect(await claim()).toBe(false)
    await db('periodic')
      .where({ name: 'daily-backup' })
      .update({ lastRunAt: db.raw(`now() - interval '61 minutes'`) })
    expect(await withBackupLock(source.pod, uninterrupted.signal, () => claim())).toBe(false)
    expect(await claim()).toBe(true)

    await source.backUp()
    await db('periodic').where({ name: 'daily-backup' }).delete()
    expect(await claim()).toBe(false)
    await db('backup_runs').update({ startedAt: db.raw(`started_at - interval '1 day'`) })
    expect(await claim()).toBe(true)
  })

  it('is checked by the doctor', async () => {
    const settings = {
      backupTo: source.repositoryFolder,
      backupS3: undefined,
      backupRecipients: source.recipient,
      dataDir: '/proc',
    }
    const check = async (changed: Partial<typeof settings>, now = new Date()) =>
      (await checkBackups({ ...settings, ...changed }, now)).map(({ state, message }) => `${state}: ${message}`)

    expect(await checkBackups({ ...settings, backupTo: undefined }, new Date())).toMatchObject([{ state: 'warn' }])
    expect(await check({})).toEqual([expect.stringContaining('warn: There is no complete backup')])
    const { id } = await source.backUp()
    expect(await check({})).toEqual([expect.stringContaining('was never verified')])
    await recordVerification(source.repository, id, new Date())
    expect(await check({})).toEqual([`ok: The newest backup ${id} is 0 hours old.`])
    expect(await check({ backupRecipients: '' })).toEqual([expect.stringContaining('no recipient')])
    expect(await check({ dataDir: source.folder })).toEqual([expect.stringContaining('on the same disk')])
    expect(await check({}, new Date(Date.now() + 27 * 3_600_000))).toEqual([expect.stringContaining('27 hours old')])
  })

  it('a full disk causes no new backup; the fault is counted, earlier backups stay, and the next run works', async ({
    skip,
  }) => {
    await using disk = await openSmallDisk(8)
    if (disk === undefined) return skip('this user may not mount a small file system')
    const repository = openRepository(join(disk.folder, 'backups'), undefined)
    const first = await source.backUp({ repository })
    await disk.fill()

    await expect(source.backUp({ repository })).rejects.toThrow('because the disk is full')

    const runs = await source.pod.db('backup_runs').orderBy('startedAt').pluck('fault')
    expect(runs).toEqual([null, expect.stringContaining('the disk is full')])
    expect(readdirSync(join(disk.folder, 'backups', 'backups'))).toEqual([first.id])
    expect(await verifyBackup(first, { repository, identities: [source.identity], ...uninterrupted })).toEqual([])
    await disk.clear()
    const next = await source.backUp({ repository })
    expect(await verifyBackup(next, { repository, identities: [source.identity], ...uninterrupted })).toEqual([])
  })

  it('can be a bucket of an S3 store; pictures and restores may be in another one', async () => {
    await using store = await startS3Store()
    const repository = openRepository('s3://pictures/backups', store.settings)
    const manifest = await source.backUp({ repository })
    const again = await source.backUp({ repository })

    expect((await listBackups(repository)).map(({ manifest: each, complete }) => [each.id, complete])).toEqual(
      [again, manifest]
        .map(({ id }) => [id, true])
        .sort()
        .reverse(),
    )
    expect(await verifyBackup(again, { repository, identities: [source.identity], ...uninterrupted })).toEqual([])
    await using place = await openRestorePlace()
    await place.restore(manifest, { repository, identities: [source.identity], environment: store.environment })
    expect(await rowsOf(place.db)).toEqual(await rowsOf(source.pod.db))
    expect(await store.client.list('images/')).toHaveLength(manifest.pictures.count)

    const { deleted } = await deleteBackups(
      repository,
      { daily: 1, weekly: 0, monthly: 0 },
      { dryRun: false, signal: uninterrupted.signal },
    )
    expect(deleted).toHaveLength(1)
    // An outage is no fault of a backup.
    const failAt = (failedStep: string) => (progress: { readonly step: string }) => {
      if (progress.step === failedStep) store.fail(503)
    }
    const identities = [source.identity]
    await expect(
      verifyBackup(again, { repository, identities, signal: uninterrupted.signal, report: failAt('files') }),
    ).rejects.toThrow('s3://pictures/backups/ cannot be used')
    store.fail(undefined)
    await using other = await openRestorePlace()
    await expect(other.restore(again, { repository, identities, report: failAt('pictures') })).rejects.toThrow(
      's3://pictures/backups/ cannot be used',
    )
    await expect(source.backUp({ repository })).rejects.toThrow('s3://pictures/backups/ cannot be used')
    const runs = await source.pod.db('backup_runs').orderBy('startedAt').pluck('fault')
    expect(runs).toEqual([null, null, expect.stringContaining('cannot be used')])
    store.fail(undefined)
    const [left] = await listBackups(repository)
    expect(left?.complete).toBe(true)
    expect(await verifyBackup(again, { repository, identities: [source.identity], ...uninterrupted })).toEqual([])
    expect(() => openRepository('s3://pictures', undefined)).toThrow('BACKUP_S3_ACCESS_KEY_ID')
  })

  it('a backup of a pod with pictures in S3 has only their list, unless an option includes them', async () => {
    await using store = await startS3Store()
    await using pod = await startBackedUpPod({ environment: store.environment })
    await pod.pod.pictures.write('a.png', Buffer.from('picture'))
    const { repository, identity } = pod
    const manifest = await pod.backUp()

    expect(manifest.pictures).toMatchObject({ count: 1, referenced: true })
    expect(existsSync(join(pod.repositoryFolder, 'pictures'))).toBe(false)
    expect(await verifyBackup(manifest, { repository, identities: [identity], ...uninterrupted })).toEqual([])
    const options = { repository, identities: [identity], environment: store.environment }
    await using place = await openRestorePlace()
    expect(await place.restore(manifest, options)).toMatchObject({ pictures: 0, lostPictures: 0 })
    expect(await store.client.list('images/')).toHaveLength(1)

    expect(readConfig({ ...store.environment, BACKUP_PICTURES: 'include' }).backupPictures).toBe('include')
    expect(readConfig({ ...store.environment, UPLOADS_FALLBACK: 'folder' }).backupPictures).toBe('include')
    expect(() => readConfig({ BACKUP_PICTURES: 'reference' })).toThrow('needs STORAGE=s3')
  })

  it('of a pod with pictures in S3 is restored into a folder', async () => {
    await using store = await startS3Store()
    await using pod = await startBackedUpPod({ environment: { ...store.environment, BACKUP_PICTURES: 'include' } })
    const { ann } = await viewers(pod)
    const name = `${newGuid()}.jpg`
    await Photo.query(pod.pod.db).insert({
      guid: newGuid(),
      authorId: ann.personId,
      name,
      public: true,
      pending: false,
    })
    for (const file of listPhotoFiles(name)) await pod.pod.pictures.write(file, Buffer.from(`content of ${file}`))
    const { repository, identity } = pod
    const manifest = await pod.backUp()
    await using place = await openRestorePlace()

    const restored = await place.restore(manifest, { repository, identities: [identity] })

    expect(restored).toMatchObject({ pictures: listPhotoFiles(name).length, lostPictures: 0 })
    for (const file of listPhotoFiles(name)) {
      expect(readFileSync(join(place.uploadsDir, 'images', file), 'utf8')).toBe(`content of ${file}`)
    }
    expect(await rowsOf(place.db)).toEqual(await rowsOf(pod.pod.db))
  })

  it('is a failed backup if the reader of a stream ends early', async () => {
    const reader = new PassThrough({ highWaterMark: 1 })
    reader.once('data', () => reader.destroy(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })))
    const repository = openTarRepository(reader)

    await expect(source.backUp({ repository })).rejects.toThrow('The output was closed before the backup was complete')

    expect(await source.pod.db('backup_runs').pluck('fault')).toEqual([expect.stringContaining('output was closed')])
  })

  it('can be a tar stream, which is unpacked into a repository', async () => {
    const folder = join(source.folder, 'unpacked')
    mkdirSync(folder)
    const tar = spawn('tar', ['x', '-C', folder], { stdio: ['pipe', 'ignore', 'inherit'] })
    const unpacked = once(tar, 'close')
    const stream = openTarRepository(tar.stdin)
    const manifest = await source.backUp({ repository: stream })
    await stream.end()
    tar.stdin.end()
    expect(await unpacked).toEqual([0, null])

    const repository = openRepository(folder, undefined)
    expect(await listBackups(repository)).toMatchObject([{ manifest, complete: true }])
    expect(await verifyBackup(manifest, { repository, identities: [source.identity], ...uninterrupted })).toEqual([])
  })

  it('refuses targets that are not supported, without their secrets', () => {
    expect(() => openRepository('s3://key:secret@bucket/prefix', undefined)).toThrow(
      /^Backups cannot be stored in s3:\/\/…:/,
    )
  })
})

describe('a start of a newer version', () => {
  it('makes a backup before the migrations, which the new version restores, and stops if that fails', async () => {
    await using place = await openRestorePlace()
    const names = (await migrationStatus(place.db)).pending
    await migrateTo(place.db, names.slice(0, -1))
    const folder = join(place.dataDir, 'backups')
    const { recipient, identity } = await generateBackupKey()
    const environment = { POD_URL: 'https://pod.example', DATA_DIR: place.dataDir, DATABASE_URL: place.url, SECRET_KEY }
    const start = (BACKUP_TO: string, settings: NodeJS.ProcessEnv = {}) =>
      backUpBeforeMigrations(readConfig({ ...environment, ...settings, BACKUP_TO, BACKUP_RECIPIENTS: recipient }), {
        ...{ db: place.db, databaseUrl: place.url, log: testLog(), signal: uninterrupted.signal },
      })

    await expect(start('/dev/null/folder')).rejects.toThrow(/^Backup before migrations failed: .*cannot be/)
    await start('/dev/null/folder', { ISOLATED: 'true' }) // its backups would be taken for those of the original
    await start(folder)
    await migrate(place.db)
    await start(folder)

    const repository = openRepository(folder, undefined)
    const backups = await listBackups(repository)
    expect(backups.map(({ manifest: { migrations } }) => migrations.length)).toEqual([names.length - 1])
    const [manifest] = backups.map((each) => each.manifest)
    if (manifest === undefined) throw new Error('There is no backup.')
    await using other = await openRestorePlace()
    await other.restore(manifest, { repository, identities: [identity], secretKey: SECRET_KEY })
    expect(await migrationStatus(other.db)).toMatchObject({ pending: [], unknown: [] })
    expect(await schemaOf(other.db)).toEqual(await schemaOf(place.db))
  })
})
