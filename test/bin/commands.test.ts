import { createHash } from 'node:crypto'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createUser } from '../../src/domain/accounts/accounts.js'
import { findViewer } from '../../src/domain/accounts/viewers.js'
import { pruneJob } from '../../src/jobs/definitions.js'
import type { OpenServices } from '../../src/services/open-services.js'
import { createTestDatabase } from '../support/databases/test-database.js'
import { openPodBySettings } from '../support/pods/pod-by-settings.js'
import { KNOWN_POD, makePlace, type Place } from './place.js'
import { makeFolder, pod, type Settings } from './program.js'

const PASSWORD = 'correct horse battery'
const { SECRET_KEY } = KNOWN_POD

/** Commands on an external database; no worker serves its queue. */
describe('the commands', { timeout: 180_000 }, () => {
  let place: Place
  let settings: Settings
  let open: OpenServices

  beforeAll(async () => {
    place = await makePlace(KNOWN_POD)
    settings = place.settings
    open = await openPodBySettings(settings)
    await createUser(open, { username: 'alice', password: PASSWORD })
  })
  afterAll(async () => {
    await open.close()
    await place.remove()
  })

  /** The JSON output of a successful command. */
  async function json(...words: string[]) {
    const { code, stdout, stderr } = await pod([...words, '--json'], settings)
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    return JSON.parse(stdout)
  }

  async function failure(...words: string[]) {
    const { code, stdout, stderr } = await pod(words, settings)
    expect(stdout).toBe('')
    expect(stderr).not.toMatch(/^\s+at /m)
    return { code, stderr: stderr.trimEnd() }
  }

  describe('user', () => {
    it('create makes an account with real keys, and prints a generated password once', async () => {
      const account = await json('user', 'create', 'bob')

      expect(account).toEqual({
        guid: expect.stringMatching(/^[0-9a-f]{32}$/),
        address: 'bob@pod.example',
        username: 'bob',
        password: expect.stringMatching(/^\S{20,}$/),
      })
      const person = await open.db('people').where({ guid: account.guid }).first()
      expect(person.publicKey).toMatch(/^-----BEGIN PUBLIC KEY-----\n/)
    })

    it('create takes a confirmed e-mail address and a language', async () => {
      await json('user', 'create', 'fred', '--email', 'Fred@MAIL.example', '--language', 'de')

      const { id, ...fred } = await open.db('users').where({ username: 'fred' }).first()
      expect(fred).toMatchObject({ language: 'de', email: 'Fred@mail.example', emailConfirmedAt: expect.any(Date) })
      expect(await open.db('aspects').where({ userId: id }).orderBy('position').pluck('name')).toEqual([
        ...['Familie', 'Freunde', 'Arbeit', 'Bekannte'],
      ])
      expect(await failure('user', 'create', 'gina', '--email', 'fred@mail.example')).toEqual({
        code: 1,
        stderr: 'Another account has this e-mail address.',
      })
      expect(await open.db('users').where({ username: 'gina' })).toEqual([])
    })

    it('create rejects invalid values before it makes keys', async () => {
      expect(await failure('user', 'create', 'alice')).toEqual({ code: 1, stderr: 'The username alice is taken.' })
      expect(await failure('user', 'create', 'Alice')).toMatchObject({ code: 1 })
      expect(await failure('user', 'create', 'dave', '--password', 'short')).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('at least 10 characters'),
      })
    })

    it('list and show print the accounts', async () => {
      expect(await json('user', 'list', '--limit', '1')).toMatchObject([
        { username: 'alice', role: 'none', closed_at: null },
      ])
      expect(await json('user', 'show', 'alice')).toMatchObject({ address: 'alice@pod.example' })
      expect(await failure('user', 'show', 'nobody')).toEqual({
        code: 1,
        stderr: 'There is no local account named nobody.',
      })
    })

    it('password reads the new password from standard input', async () => {
      const { code } = await pod(['user', 'password', 'alice', '--password-stdin'], settings, {
        input: 'another horse\nrest',
      })

      expect(code).toBe(0)
      expect(await json('audit', 'list', '--action', 'user.password')).toMatchObject([
        { actor: { name: 'command' }, target: { label: 'alice' }, after: { applications: false } },
      ])
      expect(await failure('user', 'password', 'alice', '--password', 'x', '--password-stdin')).toMatchObject({
        code: 2,
      })
    })

    it('role assigns an existing role', async () => {
      expect(await json('user', 'role', 'alice', 'moderator')).toEqual({ username: 'alice', role: 'moderator' })
      expect(await json('user', 'role', 'alice', 'moderator', '--yes')).toMatchObject({ role: 'moderator' })
      expect(await failure('user', 'role', 'alice', 'king')).toMatchObject({ code: 2 })
      expect(await failure('user', 'role', 'alice', 'admin', '--as', 'alice', '--reason', 'More work')).toMatchObject({
        code: 1,
        stderr: 'This needs the role admin.',
      })
    })

    it('audit lists, shows and exports the actions of commands, and verifies the log', async () => {
      expect(await json('audit', 'list', '--action', 'role')).toMatchObject([
        { id: 2, actor: { name: 'command' }, via: 'command', target: { label: 'alice' }, after: { role: 'moderator' } },
      ])
      expect(await json('audit', 'show', '2')).toMatchObject({ id: 2, action: 'role' })
      expect(await json('audit', 'verify')).toEqual({ entries: 2 })
      const { stdout } = await pod(['audit', 'export', '--format', 'csv'], settings)
      expect(stdout.split('\r\n')).toHaveLength(5)
      expect(await failure('audit', 'show', '99')).toMatchObject({ code: 1 })
    })

    it('archive export writes an archive and the photos to new files, and an audit entry for each', async () => {
      const [out, photos] = [join(place.folder, 'alice.json.gz'), join(place.folder, 'alice.zip')]
      const written = await json('archive', 'export', 'alice', '--out', out, '--photos', photos)

      const kinds = await open.db('audit_entries').where({ action: 'archive.export' }).orderBy('id').pluck('after')
      expect(kinds).toEqual([{ kind: 'archive' }, { kind: 'photos' }])
      expect(written).toEqual([
        {
          kind: 'archive',
          file: out,
          bytes: expect.any(Number),
          sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
          left_out: 0,
        },
        { kind: 'photos', file: photos, bytes: expect.any(Number), sha256: expect.any(String), left_out: 0 },
      ])
      const again = await failure('archive', 'export', 'alice', '--out', out)
      expect(again).toEqual({ code: 1, stderr: `The file ${out} exists already.` })
    })

    it('archive moves prints the pods that wait', async () => {
      const alice = await open.db('people').where({ address: 'alice@pod.example' }).first('id')
      const move = { oldAddress: 'alice@old.example', newPersonId: alice.id, signature: '', envelope: '<x/>' }
      const [{ id: migrationId }] = await open
        .db('accountMigrations')
        .insert({ ...move, announceUntil: new Date('2031-01-02T03:04:05Z') })
        .returning('id')
      const [{ id: podId }] = await open.db('pods').insert({ host: 'c.example', port: 443, ssl: true }).returning('id')
      const dueAt = new Date('2026-01-02T03:04:05Z')
      await open.db('migrationAnnouncements').insert({ migrationId, podId, wave: 1, dueAt })
      const pods = [{ pod: 'c.example', due_at: dueAt.toISOString(), attempts: 0, last_status: null, given_up: false }]
      expect(await json('archive', 'moves', '--waiting')).toEqual([
        expect.objectContaining({ old_address: 'alice@old.example', delivered: 0, waiting: 1, refused: 0, pods }),
      ])
    })

    it('pending is the same as sign-ups: both need a moderator, and name themselves in the audit log', async () => {
      const row = { username: 'zoe', passwordHash: 'x', language: 'en', needsConfirmation: false, needsApproval: true }
      const [{ id }] = await open
        .db('pendingSignUps')
        .insert({ ...row, expiresAt: new Date(Date.now() + 3_600_000) })
        .returning('id')
      const shown = await json('sign-ups', 'show', id)
      expect(shown).toMatchObject({ username: 'zoe', confirmed: false })
      expect(await json('user', 'pending', 'list')).toEqual([shown])
      expect(await failure('sign-ups', 'show', id, '--as', 'bob')).toMatchObject({ code: 1 })
      await json('sign-ups', 'reject', id)
      expect(await open.db('auditEntries').where({ action: 'sign_up.reject' }).pluck('reason')).toEqual([
        'Rejected with pod sign-ups.',
      ])
      expect(await failure('user', 'pending', 'show', id)).toEqual({
        code: 1,
        stderr: 'There is no such sign-up that waits for a decision.',
      })
    })

    it('shows and ends sessions, and removes second factors, with audit entries', async () => {
      expect(await json('user', 'sessions', 'alice')).toEqual([])
      expect(await json('user', 'sessions', 'alice', '--end-all', '--apps')).toMatchObject({ applications: true })
      expect(await json('user', 'two-factor', 'alice')).toMatchObject({ totp: false, recovery_codes_left: 0 })
      expect(await json('user', 'two-factor', 'alice', '--off')).toMatchObject({ removed: true })
      expect(await failure('user', 'two-factor', 'nobody')).toMatchObject({ code: 1 })
    })

    it('settings shows and changes the settings of the API, by the same names', async () => {
      const changes = ['time_zone=Europe/Berlin', 'mail_kinds.liked=never', 'digest_hour=20', 'mail_enabled=false']
      const changed = { time_zone: 'Europe/Berlin', digest_hour: 20, mail_enabled: false, email: null }
      expect(await json('user', 'settings', 'alice', ...changes)).toMatchObject(changed)
      expect((await json('user', 'settings', 'alice')).mail_kinds).toMatchObject({ liked: 'never', reshared: 'daily' })
      for (const wrong of ['time_zone=Mars/X', 'digest_hour=x', 'email=a@b.example', 'colour=red', 'language']) {
        expect(await failure('user', 'settings', 'alice', wrong)).toMatchObject({ code: 1 })
      }
      expect(await failure('user', 'settings', 'nobody')).toMatchObject({ code: 1 })
      expect(await open.db('audit_entries').where({ action: 'user.settings' })).toHaveLength(1)
    })

    it('close requires a confirmation, and has a grace period', async () => {
      await createUser(open, { username: 'leaver', password: PASSWORD })

      expect(await failure('user', 'close', 'leaver')).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('--yes'),
      })
      const closing = { username: 'leaver', close_at: expect.any(String) }
      expect(await json('user', 'close', 'leaver', '--yes')).toEqual(closing)
      expect(await json('user', 'close', 'leaver', '--cancel')).toEqual({ username: 'leaver', close_at: null })
      expect(await failure('user', 'close', 'leaver', '--cancel')).toMatchObject({ code: 1 })
      expect(await failure('user', 'close', 'leaver', '--now')).toMatchObject({ code: 1 })
      expect(await json('user', 'close', 'leaver', '--now', '--yes')).toEqual({ username: 'leaver', closed: true })
      expect(await json('user', 'show', 'leaver')).toMatchObject({ closed_at: expect.any(String) })
      const entries = await open.db('audit_entries').whereIn('action', ['user.close', 'user.keep']).orderBy('id')
      expect(entries.map(({ action, via }) => [action, via])).toEqual([
        ['user.close', 'command'],
        ['user.keep', 'command'],
        ['user.close', 'command'],
      ])
    })
  })

  describe('token', () => {
    it('creates a token for a year by default, and revoke ends it', async () => {
      const token = await json('token', 'alice', '--scopes', 'profile tags:read')

      expect(token).toEqual({
        access_token: expect.stringMatching(/^[0-9a-f]{64}$/),
        scopes: ['profile', 'tags:read', 'public:read'],
        expires_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        client_api_dialect: null,
      })
      const days = (Date.parse(token.expires_at) - Date.now()) / 86_400_000
      expect(Math.round(days)).toBe(365)

      expect(await json('token', 'revoke', token.access_token)).toEqual({ revoked: true })
      expect(await failure('token', 'revoke', token.access_token)).toMatchObject({ code: 1 })
    })

    it('lists unknown scopes, and the valid ones', async () => {
      expect(await failure('token', 'alice', '--scopes', 'profile fly')).toEqual({
        code: 1,
        stderr: expect.stringMatching(/^There is no scope fly; there are openid, .*moderation, administration\.$/),
      })
      await createUser(open, { username: 'norole', password: PASSWORD })
      expect(await failure('token', 'norole', '--scopes', 'moderation')).toEqual({
        code: 1,
        stderr: 'norole does not have the role for moderation.',
      })
      expect(await failure('token', 'alice')).toMatchObject({ code: 2 })
      expect(await failure('token', 'alice', '--scopes', 'profile', '--expires-in', 'soon')).toMatchObject({ code: 2 })
      expect(await failure('token', 'nobody', '--scopes', 'profile')).toMatchObject({ code: 1 })
    })

    it('gives the token the dialect that is named', async () => {
      const token = await json('token', 'alice', '--scopes', 'profile', '--dialect', 'diaspora')

      expect(token).toMatchObject({ client_api_dialect: 'diaspora' })
      expect((await findViewer(open, token.access_token))?.dialect).toBe('diaspora')
      expect(await failure('token', 'alice', '--scopes', 'profile', '--dialect', 'klingon')).toEqual({
        code: 2,
        stderr: expect.stringContaining('Allowed choices are standard, diaspora.'),
      })
    })

    it('never sends the token to the database', async () => {
      const { access_token: token } = await json('token', 'alice', '--scopes', 'profile', '--expires-in', '1h')

      const hash = createHash('sha256').update(token).digest()
      const stored = await open.db('access_tokens').where({ tokenHash: hash }).first()
      expect(stored).toBeDefined()
      expect(JSON.stringify(stored)).not.toContain(token)
    })
  })

  it.each([
    [['invite', '--expires-in', '5'], 'unit'],
    [['user', 'show'], "missing required argument 'username'"],
    [['user', 'list', '--nonsense'], "unknown option '--nonsense'"],
  ])('wrong use is JSON too with --json: %j', async (words, reason) => {
    const { code, stdout, stderr } = await pod([...words, '--json'], settings)

    expect([code, stdout]).toEqual([2, ''])
    expect(JSON.parse(stderr)).toEqual({ error: expect.stringContaining(reason) })
  })

  describe('the log', () => {
    it.each(['json', 'pretty'])('is written to standard error, as %s', async (format) => {
      const talkative = { ...settings, ALLOW_PRIVATE_ADDRESSES: 'true', LOG_LEVEL: 'warn', LOG_FORMAT: format }

      const { stdout, stderr } = await pod(['user', 'show', 'alice', '--json'], talkative)

      expect(JSON.parse(stdout)).toMatchObject({ username: 'alice' })
      expect(stderr).toContain('ALLOW_PRIVATE_ADDRESSES')
    })

    it('is written separately from the results of doctor', async () => {
      const talkative = { ...settings, ALLOW_PRIVATE_ADDRESSES: 'true', LOG_LEVEL: 'warn' }

      const { stdout, stderr } = await pod(['doctor', '--json'], talkative)

      expect(JSON.parse(stdout)).toMatchObject({ findings: expect.any(Array) })
      expect(stderr).toContain('"name":"command"')
    })
  })

  describe('work', () => {
    it('wait-idle prints the remaining work when its time limit expires', async () => {
      await open.jobs.add(pruneJob, {})
      const [row] = await open.db('outbox').insert({ queue: 'notify', name: 'probe', data: '{}' }).returning('id')

      expect(await failure('wait-idle', '--timeout', '1')).toEqual({
        code: 1,
        stderr: 'Work is left after 1 s: 1 job in maintenance (no worker serves it), 1 outbox row.',
      })

      await open.db('outbox').where({ id: row.id }).delete()
    })

    it('status counts the pending work', async () => {
      expect(await json('status')).toMatchObject({
        queues: { maintenance: { waiting: 1, workers: 0 }, inbound: { waiting: 0 } },
        outbox: { waiting: 0 },
      })
    })

    it('prune reports that posts stay without a setting, and status the time of the last backup', async () => {
      const [preview, past] = [await pod(['prune', '--dry-run'], settings), await pod(['status'], settings)]
      expect(preview.stdout).toContain('All posts stay: RETENTION_POSTS_DAYS is 0.')
      expect(past.stdout).toMatch(/^last sweep {10}never\nlast backup {9}never$/m)
    })

    it('prune removes what is older than a number of days in one category, or in those that the settings limit', async () => {
      const olderThan = async (days: string, options: readonly string[] = [], more: Settings = {}) => {
        const words = ['prune', '--dry-run', '--older-than', days, ...options]
        const { code, stdout, stderr } = await pod([...words, '--json'], { ...settings, ...more })
        if (code !== 0) return JSON.parse(stderr).error
        const { categories } = JSON.parse(stdout)
        return categories.map(({ category, days }: { category: string; days: number }) => `${category} ${days}`)
      }
      expect(await olderThan('90d')).toEqual(['notifications 90', 'dead 90'])
      expect(await olderThan('90d', [], { RETENTION_NOTIFICATIONS_DAYS: '0' })).toEqual(['dead 90'])
      expect(await olderThan('90d', [], { RETENTION_POSTS_DAYS: '180' })).toContain('posts 90')
      expect(await olderThan('90d', ['--category', 'posts'])).toEqual(['posts 90'])
      expect(await olderThan('90d', ['--category', 'tombstones'])).toEqual(['tombstones 90'])
      expect(await olderThan('29d', [], { RETENTION_POSTS_DAYS: '180' })).toBe(
        '--older-than must be at least 30 days for posts.',
      )
      expect(await olderThan('30d', ['--category', 'tombstones'])).toBe(
        '--older-than must be at least 90 days for tombstones.',
      )
      const { stdout } = await pod(['prune', '--dry-run', '--older-than', '90d'], settings)
      expect(stdout).toMatch(/^notifications +90 days/m)
      expect(stdout).toContain('All posts stay: RETENTION_POSTS_DAYS is 0.')
      expect(stdout).toContain('All tombstones stay: --older-than applies to them only with --category.')
    })

    it('status counts the files of moved photos, doctor names overdue ones, and prune --files deletes these', async () => {
      const { personId } = await open.db('users').where({ username: 'alice' }).first()
      const photo = { guid: 'moved-photo-0123456789', authorId: personId, name: 'moved.png', public: true }
      const [{ id }] = await open.db('photos').insert(photo).returning('id')
      await open.pictures.write('thumb_small_moved.png', Buffer.from('a picture'))
      await open.db('photos').where({ id }).update({ remotePath: 'https://new.example/uploads/images/' })
      const movedPhotos = async () => (await json('status')).movedPhotos
      const findings = async () => {
        const { stdout } = await pod(['doctor', '--json'], settings)
        return JSON.parse(stdout).findings.filter(({ check }: { check: string }) => check === 'moved photos')
      }
      const pruned = async (...options: string[]) => (await json('prune', '--files', ...options)).categories[1]
      expect([await movedPhotos(), await findings()]).toEqual([{ files: 1, due: 0, oldest: expect.any(String) }, []])
      expect(await pruned()).toMatchObject({ category: 'moved photos', days: 90, rows: 0 })

      await open.db('moved_photo_files').update({ movedAt: open.db.raw(`now() - interval '93 days'`) })
      expect(await movedPhotos()).toMatchObject({ files: 1, due: 1 })
      expect(await findings()).toMatchObject([{ state: 'warn', message: expect.stringContaining('Files of 1 photos') }])
      expect(await pruned('--dry-run')).toMatchObject({ rows: 1, oldest: expect.any(String) })
      expect(await open.pictures.find('thumb_small_moved.png')).toBeDefined()
      expect(await pruned()).toMatchObject({ rows: 1 })
      expect(await open.pictures.find('thumb_small_moved.png')).toBeUndefined()
      expect([(await movedPhotos()).files, await findings()]).toEqual([0, []])
      await open.db('photos').where({ id }).delete()
    })

    it('dead lists, shows, replays and drops dead letters', async () => {
      const [{ id }] = await open
        .db('outbox')
        .insert({ queue: 'notify', name: 'probe', data: '{"about":7}', failedAt: open.db.fn.now() })
        .returning('id')
      const name = `outbox-${id}`

      expect(await json('dead', 'list')).toMatchObject([{ id: name, queue: 'notify', name: 'probe', trace: null }])
      expect((await pod(['dead', 'list'], settings)).stdout).toMatch(/\n1 dead letter\n$/)
      expect(await json('dead', 'list', '--queue', 'fetch')).toEqual([])
      expect(await json('dead', 'show', name)).toMatchObject({ id: name, data: { about: 7 } })
      expect(await failure('dead', 'show', 'outbox-0')).toMatchObject({ code: 1 })
      expect(await failure('dead', 'replay')).toMatchObject({ code: 2 })
      expect(await failure('dead', 'replay', name)).toMatchObject({
        code: 1,
        stderr: expect.stringContaining('reason'),
      })
      expect(await json('dead', 'replay', name, '--reason', 'Mended')).toEqual({ replayed: 1 })
      expect(await json('dead', 'list')).toEqual([])

      await open.db('outbox').where({ id }).update({ failedAt: open.db.fn.now() })
      const unconfirmed = await pod(['dead', 'drop', name, '--reason', 'Obsolete'], settings)
      expect(unconfirmed).toMatchObject({
        code: 1,
        stderr: 'dead letters  1\nNothing was changed. Add --yes to do it.\n',
      })
      expect(await json('dead', 'drop', name, '--dry-run')).toEqual({ dead_letters: 1 })
      expect(await json('dead', 'drop', name, '--yes', '--reason', 'Obsolete')).toEqual({ dropped: 1 })
      expect(await open.db('outbox').where({ id })).toEqual([])
    })

    it('doctor prints each problem with its remedy, and fails', async () => {
      const { code, stdout, stderr } = await pod(['doctor', '--json'], settings)

      const { healthy, findings } = JSON.parse(stdout)
      expect({ code, healthy, stderr }).toEqual({ code: 1, healthy: false, stderr: '{"error":"One check failed."}\n' })
      expect(findings).toContainEqual({
        check: 'workers',
        state: 'fail',
        message: expect.stringMatching(/^No worker serves inbound, .*maintenance: start the pod/),
      })
      expect(findings).toContainEqual({
        check: 'address',
        state: 'ok',
        message: expect.stringContaining('https://pod.example'),
      })
      expect(findings).toContainEqual(expect.objectContaining({ check: 'sealed keys', state: 'ok' }))
    })

    it('doctor reports a secret key that does not match the accounts', async () => {
      const { stdout } = await pod(['doctor', '--json'], { ...settings, SECRET_KEY: SECRET_KEY.toUpperCase() })

      expect(JSON.parse(stdout).findings).toContainEqual(
        expect.objectContaining({ check: 'sealed keys', state: 'fail' }),
      )
    })
  })

  describe('config', () => {
    it('prints the effective settings without secrets', async () => {
      const { code, stdout } = await pod(['config', '--json'], {
        SECRET_KEY,
        DATABASE_URL: 'postgres://pod:very-secret@db.example/pod?sslpassword=very-secret',
        REDIS_URL: 'redis://:very-secret@redis.example:6379',
        WORKER_CONCURRENCY: 'fetch=3',
      })

      expect(code).toBe(0)
      expect(stdout).not.toMatch(/very-secret|only good for/)
      expect(JSON.parse(stdout)).toMatchObject({
        POD_URL: 'http://localhost:3000',
        DATABASE_URL: 'postgres://pod:***@db.example/pod?sslpassword=***',
        WORKER_CONCURRENCY: 'fetch=3',
        SECRET_KEY: '(set)',
      })
    })

    it('prints the address of the pod that owns the data folder, and every limit', async () => {
      const { path, remove } = await makeFolder()
      await writeFile(join(path, 'address.json'), JSON.stringify({ url: 'http://localhost:5700', pid: process.pid }))

      const { stdout } = await pod(['config', '--json'], { DATA_DIR: path, AUTHORIZATION_LIMIT: '7', PAGE_LIMIT: '8' })

      const address = { POD_URL: 'http://localhost:5700', PORT: 5700 }
      expect(JSON.parse(stdout)).toMatchObject({ ...address, AUTHORIZATION_LIMIT: 7, PAGE_LIMIT: 8 })
      await remove()
    })

    it('reads the file .env of the working folder, and the environment before it', async () => {
      const { path, remove } = await makeFolder()
      await writeFile(join(path, '.env'), 'POD_NAME=From file\nLOG_LEVEL=warn\n')

      const { stdout } = await pod(['config', '--json'], { LOG_LEVEL: 'error' }, { cwd: path })

      expect(JSON.parse(stdout)).toMatchObject({ POD_NAME: 'From file', LOG_LEVEL: 'error' })
      await remove()
    })
  })

  describe('wrong use', () => {
    it.each(['', 'fly', 'user', 'user create', 'status --fast', 'user list --limit none'])(
      'answers "pod %s" with 2',
      async (words) => {
        const { code, stderr } = await pod(words.split(' ').filter(Boolean), settings, { ownProcess: true })

        expect(stderr).not.toBe('')
        expect(code).toBe(2)
      },
    )
  })

  describe('db', () => {
    it('status, rollback and migrate revert and apply migrations', async () => {
      const own = await createTestDatabase()
      const there = { ...settings, DATABASE_URL: own.url }
      const before = JSON.parse((await pod(['db', 'status', '--json'], there)).stdout)
      expect(before).toMatchObject({ pending: [], unknown: [] })
      expect(before.applied).toContain('0001-people')

      expect(await pod(['db', 'rollback'], there)).toMatchObject({ code: 1 })
      expect(JSON.parse((await pod(['db', 'rollback', '--yes', '--json'], there)).stdout).removed).toHaveLength(
        before.applied.length,
      )
      const refused = await pod(['user', 'list'], there)
      expect(refused).toMatchObject({ code: 1, stderr: expect.stringMatching(/0001-people.*db migrate/) })

      // Another process starts as soon as it finds the tables of the pod: those of the queue come first.
      const client = new Client({ connectionString: own.url })
      await client.connect()
      await client.query('drop schema bullmq cascade; create table people ()')
      expect(await pod(['db', 'migrate'], there)).toMatchObject({ code: 1 })
      expect((await client.query(`select to_regclass('bullmq.job') is not null as found`)).rows).toEqual([
        { found: true },
      ])
      await client.query('drop table people')
      await client.end()

      expect(JSON.parse((await pod(['db', 'migrate', '--json'], there)).stdout)).toEqual({ applied: before.applied })
      expect(JSON.parse((await pod(['db', 'migrate', '--json'], there)).stdout)).toEqual({ applied: [] })
      await own.drop()
    })
  })
})
