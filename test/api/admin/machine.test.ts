import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { recordForeignBackup } from '../../../src/persistence/operations/backup-runs.js'
import { replaceChecks } from '../../../src/persistence/operations/checks.js'
import { recordHeartbeat } from '../../../src/persistence/operations/processes.js'
import { savePictureCount } from '../../../src/persistence/photos/picture-counts.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { makeStaff, type StaffClient } from '../../support/people/staff.js'
import { type ApiPod, startApiPod } from '../../support/pods/api-pod.js'

let api: ApiPod
let adm: StaffClient
beforeAll(async () => {
  api = await startApiPod({ environment: { WRITE_LIMIT: '0' } })
  adm = await makeStaff(api, 'adm', 'admin')
})
afterAll(() => api.close())

describe('the admin API', () => {
  it('lists processes until 30 seconds after their last heartbeat', async () => {
    const id = '00000000-0000-4000-8000-000000000001'
    const job = { queue: 'relay', name: 'dispatch', attempt: 1, since: new Date(0).toISOString() }
    const threads = { busy: 1, max: 2, waiting: 3 }
    const facts = { rssBytes: 2, heapBytes: 1, busyPercent: 3, loopLagMs: 4, threads, queues: ['relay'], jobs: [job] }
    const started = { startedAt: new Date(0), version: '1.0.0', host: 'machine', pid: 7 }
    await recordHeartbeat(api.pod.db, { id, kind: 'worker', ...started, facts })

    expect((await adm.get('/workers')).body).toMatchObject([
      {
        id,
        kind: 'worker',
        host: 'machine',
        pid: 7,
        version: '1.0.0',
        rss_bytes: 2,
        queues: ['relay'],
        jobs: [job],
        event_loop_p99_ms: 4,
        threads,
      },
    ])
    await api.pod.db('processes').update({ seenAt: api.pod.db.raw(`now() - interval '31 seconds'`) })
    expect((await adm.get('/workers')).body).toEqual([])
  })

  it('lists the last checks of the pod, those that need an action first', async () => {
    expect((await adm.get('/checks')).body).toEqual([])
    const certificateEndsAt = new Date('2026-12-01T00:00:00Z')
    await replaceChecks(api.pod.db, [
      { name: 'certificate', state: 'ok', message: 'It is valid.', certificateEndsAt },
      { name: 'events', state: 'fail', message: 'No event arrives.', certificateEndsAt: null },
    ])
    const checked_at = expect.any(String)
    expect((await adm.get('/checks')).body).toEqual([
      { check: 'events', state: 'fail', message: 'No event arrives.', certificate_ends_at: null, checked_at },
      {
        ...{ check: 'certificate', state: 'ok', message: 'It is valid.', checked_at },
        certificate_ends_at: '2026-12-01T00:00:00.000Z',
      },
    ])
  })

  it('reads the state of the database and the free space', async () => {
    const { body } = await adm.get('/database')
    expect(body).toMatchObject({ replicas: 0, replica_lag_seconds: null, bytes: expect.any(Number) })
    expect(body.tables.map(({ name }: { name: string }) => name)).toContain('public.people')
    const slow = { text: 'select pg_sleep($1)', count: 2, maxMs: 900, lastAt: new Date().toISOString() }
    const measured = { rssBytes: 2, heapBytes: 1, busyPercent: 3, queues: [], jobs: [], slowStatements: [slow] }
    for (const pid of [8, 9]) {
      const id = `00000000-0000-4000-8000-00000000000${pid}`
      const started = { startedAt: new Date(0), version: '1.0.0', host: 'machine', pid }
      await recordHeartbeat(api.pod.db, { id, kind: 'worker', ...started, facts: measured })
    }
    expect((await adm.get('/database')).body).toMatchObject({
      slow_statements_from: 'sample',
      slow_statements: [{ text: 'select pg_sleep($1)', count: 4, max_ms: 900 }],
    })
    const { folders, ...storage } = (await adm.get('/storage')).body
    const none = { age_seconds: null, duration_seconds: null, bytes: null, tool: null, verified_age_seconds: null }
    expect(storage).toEqual({ store: 'folder', pictures: null, moved_photos: 0, backup: { ...none, failed_runs: 0 } })
    const recorded = { tool: 'pgbackrest', at: new Date(Date.now() - 60_000), bytes: 5, isVerified: true }
    await recordForeignBackup(api.pod.db, recorded, new Date())
    const { backup } = (await adm.get('/storage')).body
    expect(backup).toMatchObject({ tool: 'pgbackrest', bytes: 5, failed_runs: 0 })
    for (const age of [backup.age_seconds, backup.verified_age_seconds]) expect(Math.round(age / 60)).toBe(1)
    for (const each of folders) expect(each).toMatchObject({ folder: expect.any(String), nearly_full: false })
    expect(folders.length).toBeGreaterThan(0)
  })

  it('reads the last count of the pictures, with those without a photo', async () => {
    const counted = { files: 1_234, bytes: 5_000_000_000, orphans: 56, orphanBytes: 7_000, countedAt: new Date(0) }
    await savePictureCount(api.pod.db, 'complete', { after: 'x', ...counted })
    await savePictureCount(api.pod.db, 'running', { after: 'a', ...counted, files: 2 })

    expect((await adm.get('/storage')).body.pictures).toEqual({
      ...{ files: 1_234, bytes: 5_000_000_000, orphans: 56, orphan_bytes: 7_000 },
      counted_at: '1970-01-01T00:00:00.000Z',
    })
  })
})

describe('the deliveries of a post', () => {
  it('are shown to admins with everything, and to the author with the pods only if it is public', async () => {
    const { alice, bob } = await api.people('alice', 'bob')
    const { db } = api.pod
    const { podId } = await addRemotePerson(api.pod, 'quin@far.example')
    const { body: post } = await alice.post('/posts', { body: 'Hello', public: true })
    const author = await db('people').where({ guid: alice.guid }).first('id')
    const [{ id: messageId }] = await db('outbound_messages')
      .insert({
        ...{
          record: 'post',
          guid: post.guid,
          verb: 'create',
          senderId: author.id,
          public: true,
          entity: '<x/>',
          sentTo: 3,
        },
      })
      .returning('id')
    await db('deliveries').insert({ messageId, podId, lastFault: 'net', attempts: 2 })

    const path = `/posts/${post.guid}/deliveries`
    expect((await adm.get(path)).body).toMatchObject([
      {
        ...{ verb: 'create', sent_to: 4, arrived: 3, arrived_at: [], skipped: [] },
        missing: [{ state: 'waiting', pod: 'far.example', person: null, attempts: 2, fault: 'net', status: null }],
      },
    ])
    expect((await alice.get(path)).body).toMatchObject([
      { sent_to: 4, arrived: 3, waiting: 1, refused: 0, waiting_pods: ['far.example'], refused_pods: [] },
    ])
    const { podId: other } = await addRemotePerson(api.pod, 'rita@arrived.example:8443')
    await db('message_results').insert([
      { messageId, outcome: 'arrived', podIds: [other] },
      { messageId, outcome: 'blocked', podIds: [podId] },
    ])
    expect((await adm.get(path)).body).toMatchObject([
      {
        arrived_at: [{ pod: 'arrived.example:8443', at: expect.stringMatching(/^\d{4}-.*Z$/) }],
        skipped: [{ pod: 'far.example', reason: 'blocked' }],
      },
    ])
    expect((await alice.get(path)).body).toMatchObject([
      { skipped: 1, arrived_pods: ['arrived.example:8443'], skipped_pods: ['far.example'] },
    ])
    await db('posts').where({ guid: post.guid }).update({ public: false })
    const [own] = (await alice.get(path)).body
    expect([own.waiting, own.skipped, 'waiting_pods' in own, 'arrived_pods' in own]).toEqual([1, 1, false, false])

    await db('posts').where({ guid: post.guid }).update({ public: true })
    expect((await bob.get(path)).body).toMatchObject({ code: 403, reason: 'not_author' })
    const unknown = `/posts/${'0'.repeat(32)}/deliveries`
    for (const client of [adm, alice]) expect((await client.get(unknown)).body).toMatchObject({ code: 404 })
  })
})
