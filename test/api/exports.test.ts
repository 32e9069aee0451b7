import { gunzipSync } from 'node:zlib'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { resetPassword } from '../../src/domain/accounts/accounts.js'
import { closeUser } from '../../src/domain/accounts/closing/close-now.js'
import type { Scope } from '../../src/domain/accounts/scopes.js'
import { deleteExpiredExports } from '../../src/domain/archives/exports.js'
import { ARCHIVE_LIMITS } from '../../src/domain/archives/limits.js'
import { makeWaitingExports } from '../../src/federation/archives/make-exports.js'
import { startExports } from '../../workers/run-exports.js'
import { addImport } from '../support/databases/rows.js'
import { type ApiPerson, expectError } from '../support/pods/api-pod.js'
import { type PhotoPod, startPhotoPod } from '../support/pods/photo-pod.js'

const SCOPES: readonly Scope[] = ['profile:read_private', 'contacts:read', 'private:read', 'conversations', 'tags:read']
const never = new AbortController().signal

describe('exports', () => {
  let api: PhotoPod
  let alice: ApiPerson
  beforeAll(async () => {
    api = await startPhotoPod()
    alice = api.alice
  })
  afterAll(() => api.close())
  beforeEach(() => api.pod.db('exports').delete())

  const request = (kind: string) => alice.post('/user/exports', { kind })
  const make = () => makeWaitingExports(api.pod, never)
  const state = async (id: string) => (await alice.get(`/user/exports/${id}`)).body.state
  const download = (id: string, headers = {}) =>
    api.app.inject({
      method: 'GET',
      url: `/api/v1/user/exports/${id}/file`,
      headers: { authorization: `Bearer ${alice.token}`, ...headers },
    })

  it('are made by a worker, and can be downloaded, also in parts', async () => {
    const { status, body } = await request('copy')
    expect([status, body]).toEqual([202, expect.objectContaining({ kind: 'copy', state: 'waiting', bytes: null })])
    expectError(await alice.get(`/user/exports/${body.id}/file`), 409)

    await make()
    const ready = (await alice.get(`/user/exports/${body.id}`)).body
    expect(ready).toMatchObject({
      state: 'ready',
      bytes: expect.any(Number),
      sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    })
    const file = await download(body.id)
    expect(file.headers).toMatchObject({
      'content-type': 'application/gzip',
      'content-length': String(ready.bytes),
      'cache-control': 'private, no-store',
      'content-disposition': expect.stringMatching(
        /^attachment; filename="diaspora_alice_copy_\d{4}-\d\d-\d\d\.json\.gz"$/,
      ),
    })
    expect(JSON.parse(gunzipSync(file.rawPayload).toString()).user).toMatchObject({
      username: 'alice',
      private_key: '',
    })
    const part = await download(body.id, { range: 'bytes=0-1' })
    expect([part.statusCode, part.rawPayload.toString('hex')]).toEqual([206, '1f8b'])
    expect((await alice.get('/user/exports')).body).toEqual([ready])
  })

  it('are requested once with an Idempotency-Key, also after the response was lost', async () => {
    const { db } = api.pod
    const send = async () => {
      const headers = { authorization: `Bearer ${alice.token}`, 'idempotency-key': 'lost' }
      const url = '/api/v1/user/exports'
      const response = await api.app.inject({ method: 'POST', url, headers, payload: { kind: 'copy' } })
      return [response.statusCode, response.json().reason]
    }
    await db.raw('alter table idempotency_keys add constraint no_answer check (status is null)')
    const first = await send()
    await db.raw('alter table idempotency_keys drop constraint no_answer')
    await db('exports').delete()
    await db('idempotencyKeys').update({ claimedAt: new Date(Date.now() - 241_000) })

    expect([first, await send()]).toEqual([
      [202, undefined],
      [409, 'idempotency_result_lost'],
    ])
    expect((await alice.get('/user/exports')).body).toEqual([])
  })

  it('never contain the private key for a token, and need every scope of their content', async () => {
    expectError(await request('archive'), 403)
    expect((await request('archive')).body.reason).toBe('page_only')
    expectError(await request('everything'), 422)
    for (const left of SCOPES) {
      const client = await alice.with(...SCOPES.filter((scope) => scope !== left))
      expectError(await client.get('/user/exports'), 403)
      expectError(await client.post('/user/exports', { kind: 'copy' }), 403)
    }
    const client = await alice.with(...SCOPES)
    expect((await client.get('/user/exports')).status).toBe(200)
  })

  it('an export with the private key, made on the page, cannot be downloaded with a token', async () => {
    const { body } = await request('copy')
    await make()
    await api.pod.db('exports').update({ kind: 'archive' })

    expect((await alice.get(`/user/exports/${body.id}/file`)).body).toMatchObject({ reason: 'page_only' })
    expect((await alice.delete(`/user/exports/${body.id}`)).body).toMatchObject({ reason: 'page_only' })
    expect(await state(body.id)).toBe('ready')
  })

  it('have one entry an hour in the audit log for their downloads, and none for one that failed', async () => {
    const { body } = await request('copy')
    await make()
    const entries = () => api.pod.db('audit_entries').whereRaw(`after ->> 'export' = ?`, [body.id])
    for (let count = 1; count <= 3; count += 1) expect((await download(body.id)).statusCode).toBe(200)
    expect(await entries()).toHaveLength(1)

    await api.pod.db('exports').update({ downloadedAt: new Date(Date.now() - 3_700_000) })
    await api.pod.pictures.deleteExports([body.id])
    expect((await download(body.id)).statusCode).toBe(410)
    expect(await entries()).toHaveLength(1)
  })

  it('of a closed account are deleted with its data', async () => {
    const { eve } = api
    const { body } = await eve.post('/user/exports', { kind: 'copy' })
    await make()
    const waiting = (await eve.post('/user/exports', { kind: 'photos' })).body.id
    await closeUser(api.pod, 'eve')

    await deleteExpiredExports(api.pod)
    await make()
    for (const id of [body.id, waiting]) expect(await api.pod.pictures.openExport(id)).toBeUndefined()
  })

  it('of another person do not exist', async () => {
    const { body } = await request('photos')

    for (const path of [`/user/exports/${body.id}`, `/user/exports/${body.id}/file`])
      expectError(await api.bob.get(path), 404)
    expectError(await api.bob.delete(`/user/exports/${body.id}`), 404)
    expect((await api.bob.get('/user/exports')).body).toEqual([])
  })

  it('are made one at a time for each kind, and three a day, also if they are deleted', async () => {
    for (let count = 1; count <= ARCHIVE_LIMITS.exportsADay; count += 1) {
      const { body } = await request('copy')
      expectError(await request('copy'), 409)
      await make()
      expect((await alice.delete(`/user/exports/${body.id}`)).status).toBe(204)
      expectError(await alice.get(`/user/exports/${body.id}`), 404)
    }
    const refused = await request('copy')
    expectError(refused, 429)
    expect(Number(refused.headers['retry-after'])).toBeGreaterThan(86_000)
    expect((await request('photos')).status).toBe(202)
  })

  it('end with the next one of their kind, and after 14 days: the file is deleted', async () => {
    const first = (await request('copy')).body.id
    await make()
    const second = (await request('copy')).body.id
    await make()
    expectError(await alice.get(`/user/exports/${first}/file`), 410)
    await deleteExpiredExports(api.pod)
    expect([await state(first), await state(second)]).toEqual(['expired', 'ready'])
    expect(await api.pod.pictures.openExport(first)).toBeUndefined()

    const later = new Date(Date.now() + ARCHIVE_LIMITS.exportDays * 86_400_000)
    await deleteExpiredExports({ ...api.pod, now: () => later })
    expect(await state(second)).toBe('expired')
    expect((await download(second)).statusCode).toBe(410)
    expect(await api.pod.pictures.openExport(second)).toBeUndefined()
  })

  it('are neither made nor deleted by an isolated copy, which may have the folder of its original', async () => {
    const { id } = (await request('copy')).body
    await make()
    await api.pod.db('exports').update({ expiresAt: new Date(0) })
    const row = () => api.pod.db('exports').first('state', 'expiresAt')
    const before = await row()
    Object.assign(api.pod.config, { isolated: true })
    try {
      const exports = startExports(api.pod)
      await exports.stop()
      expect(await row()).toEqual(before)
      const refused = await request('photos')
      expect([refused.status, refused.body]).toEqual([403, expect.objectContaining({ reason: 'isolated_copy' })])
    } finally {
      Object.assign(api.pod.config, { isolated: false })
    }
    expect(await api.pod.pictures.openExport(id)).toBeDefined()
  })

  it('end with a new password: an earlier file is deleted, and an earlier request makes none', async () => {
    const { id } = (await request('copy')).body
    await make()
    const waiting = (await request('photos')).body.id
    await resetPassword(api.pod, 'alice', 'another correct horse', { shouldKeepApplications: true })

    expectError(await alice.get(`/user/exports/${id}/file`), 410)
    expectError(await alice.get(`/user/exports/${waiting}`), 404)
    await make()
    expect(await api.pod.pictures.openExport(waiting)).toBeUndefined()
  })

  it('the state and counts of imports are readable', async () => {
    await addImport(api.pod, { uid: 'f'.repeat(32), userId: alice.viewer.userId })
    const expected = {
      id: 'f'.repeat(32),
      state: 'done',
      old_address: 'alice@old.example',
      moves: true,
      sections: { posts: { found: 3, imported: 2, skipped: 0, refused: 1, by_reason: { schema: 1 } } },
    }
    expect((await alice.get('/user/imports')).body).toEqual([expect.objectContaining(expected)])
    expect((await alice.get(`/user/imports/${'f'.repeat(32)}`)).body).toMatchObject(expected)
    expectError(await api.bob.get(`/user/imports/${'f'.repeat(32)}`), 404)
  })

  it('are not begun if the disk has less than twice the space that they need', async () => {
    const [{ authorId }] = await api.pod.db('people').where({ guid: alice.guid }).select('id as authorId')
    const photo = { guid: 'e'.repeat(32), authorId, name: 'large.png', public: true, bytes: 2 ** 52 }
    await api.pod.db('photos').insert(photo)
    const failed = (await request('photos')).body
    const small = (await request('copy')).body
    await make()
    await api.pod.db('photos').where({ guid: photo.guid }).delete()
    expect((await alice.get(`/user/exports/${failed.id}`)).body).toMatchObject({ state: 'failed', error: 'no_space' })
    expect(await state(small.id)).toBe('ready')
  })

  it('that are too large for the store fail with this reason', async () => {
    const { pictures } = api.pod
    const estimated = (await request('photos')).body
    await makeWaitingExports(
      { ...api.pod, pictures: { ...pictures, maxExportBytes: -1 } },
      new AbortController().signal,
    )
    const made = (await request('copy')).body
    await makeWaitingExports(
      { ...api.pod, pictures: { ...pictures, maxExportBytes: 100 } },
      new AbortController().signal,
    )

    for (const { id } of [estimated, made]) {
      expect((await alice.get(`/user/exports/${id}`)).body).toMatchObject({ state: 'failed', error: 'too_large' })
    }
  })

  it('of a worker that has died begin again, three times in all', async () => {
    const { id } = (await request('copy')).body
    const die = () => api.pod.db.raw(`update exports set state = 'running', alive_at = now() - interval '2 minutes'`)
    await die()
    await api.pod.db('exports').update({ attempts: ARCHIVE_LIMITS.exportAttempts - 1 })
    await make()
    expect(await state(id)).toBe('ready')

    await die()
    await make()
    expect((await alice.get(`/user/exports/${id}`)).body).toMatchObject({ state: 'failed', error: 'interrupted' })
  })
})
