import { pino } from 'pino'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { openServices } from '../../../src/services/open-services.js'
import { buildApp } from '../../../src/web/server/app.js'
import { listen } from '../../../src/web/server/listen.js'
import { maintenanceHandlers } from '../../../workers/handlers/maintenance.js'
import { notifyHandlers } from '../../../workers/handlers/notify.js'
import { type ReplicatedDatabase, startReplicatedDatabase } from '../../support/databases/replicated-database.js'
import { openEventStream } from '../../support/http/event-stream.js'
import { type ApiPod, startApiPod } from '../../support/pods/api-pod.js'
import { fixedKeyCrypto } from '../../support/pods/fixed-key-crypto.js'
import { startTestWorkers, untilIdle } from '../../support/queues/test-workers.js'

const SOON = { interval: 20 }

describe('lists, with a replica behind DATABASE_READ_URL', () => {
  let database: ReplicatedDatabase
  /** Two web processes. */
  let web: ApiPod
  let other: Awaited<ReturnType<typeof openOther>>
  const lines: { readonly level: number; readonly msg: string }[] = []
  beforeAll(async () => {
    database = await startReplicatedDatabase()
    const log = pino({ level: 'info' }, { write: (line) => void lines.push(JSON.parse(line)) })
    const environment = { DATABASE_URL: database.url, DATABASE_READ_URL: database.standby.url }
    web = await startApiPod({ environment, log })
    other = await openOther()
    await web.people('alice', 'bob')
    await ageTokens()
  })
  afterAll(async () => {
    await other?.close()
    await web?.close()
    await database?.stop()
  })

  async function openOther() {
    const pod = await openServices(web.pod.config, 'web', { crypto: fixedKeyCrypto(), log: pino({ level: 'silent' }) })
    const app = await buildApp(pod)
    return {
      pod,
      async get(token: string, path: string) {
        const headers = { authorization: `Bearer ${token}` }
        const answer = await app.inject({ url: `/api/v1${path}`, headers })
        return { status: answer.statusCode, body: answer.json() }
      },
      async close() {
        await app.close()
        await pod.close()
      },
    }
  }

  /** Before a new token there may have been anything, so its lists come from the primary for a while. */
  async function ageTokens(): Promise<void> {
    await web.pod.db.raw(`update access_tokens set created_at = created_at - interval '1 hour'`)
    await web.pod.db.raw('delete from last_writes')
  }
  const factsOf = ({ replica }: ApiPod['pod']) => {
    if (replica === undefined) throw new Error('It has no replica.')
    return replica.status()
  }
  const untilUsed = () =>
    vi.waitFor(() => {
      expect(factsOf(web.pod).age).toBeDefined()
      expect(factsOf(other.pod).age).toBeDefined()
    }, SOON)

  it('are read from the replica', async () => {
    const { alice } = await web.people('alice')
    const { body: post } = await alice.post('/posts', { public: true, body: 'Hello #cats' })
    const { body: aspects } = await alice.get('/aspects')
    const { bob } = await web.people('bob')
    const { body: talk } = await startTalk()
    await ageTokens()
    await untilUsed()
    const paths = [
      '/aspects',
      `/aspects/${aspects[0].id}/contacts`,
      `/users/${alice.guid}/contacts`,
      '/conversations',
      `/conversations/${talk.guid}/messages`,
      '/notifications',
      '/photos',
      `/posts/${post.guid}/comments`,
      `/posts/${post.guid}/likes`,
      `/posts/${post.guid}/reshares`,
      '/search/posts?tag=cats',
      '/search/tags?query=ca',
      '/search/users?name_or_handle=bob',
      '/streams/activity',
      '/streams/aspects',
      '/streams/commented',
      '/streams/liked',
      '/streams/main',
      '/streams/mentions',
      '/streams/tags',
      '/tag_followings',
      `/users/${alice.guid}/posts`,
      `/users/${bob.guid}/photos`,
    ]
    await vi.waitFor(async () => {
      await untilUsed()
      const before = factsOf(web.pod).lists
      for (const path of paths) expect([path, (await alice.get(path)).status]).toEqual([path, 200])
      const { replica, primary, failed } = factsOf(web.pod).lists
      expect([replica - before.replica, primary - before.primary, failed]).toEqual([paths.length, 0, 0])
    }, SOON)

    async function startTalk() {
      await alice.post(`/aspects/${aspects[0].id}/contacts`, { person_guid: bob.guid })
      const { body: his } = await bob.get('/aspects')
      await bob.post(`/aspects/${his[0].id}/contacts`, { person_guid: alice.guid })
      return alice.post('/conversations', { subject: 'A walk', body: 'Tomorrow?', recipients: [bob.guid] })
    }
  })

  it('a user reads their own write in every process, however late the replica is', async () => {
    const { alice, bob } = await web.people('alice', 'bob')
    await untilUsed()
    await database.standby.hold()
    try {
      await alice.post('/aspects', { name: 'held' })
      for (const { body } of [await alice.get('/aspects'), await other.get(alice.token, '/aspects')]) {
        expect(body.map(({ name }: { name: string }) => name)).toContain('held')
      }
      const before = factsOf(other.pod).lists.replica
      await other.get(bob.token, '/aspects')
      expect(factsOf(other.pod).lists.replica).toBe(before + 1) // nothing keeps those who have not written
    } finally {
      await database.standby.follow()
    }
    await vi.waitFor(async () => {
      const before = factsOf(other.pod).lists.replica
      const { body } = await other.get(alice.token, '/aspects')
      expect(body.map(({ name }: { name: string }) => name)).toContain('held')
      expect(factsOf(other.pod).lists.replica).toBe(before + 1)
    }, SOON)
  })

  it('a notification just opened is shown as read', async () => {
    const { alice, bob } = await web.people('alice', 'bob')
    const { body: post } = await bob.post('/posts', { public: true, body: 'Like me' })
    await alice.post(`/posts/${post.guid}/likes`)
    const { body: told } = await bob.get('/notifications?only_unread=true')
    await ageTokens()
    await untilUsed()
    await database.standby.hold()
    try {
      await bob.get(`/notifications/${told[0].guid}`)
      const { body: unread } = await bob.get('/notifications?only_unread=true')
      expect(unread.map(({ guid }: { guid: string }) => guid)).not.toContain(told[0].guid)
    } finally {
      await database.standby.follow()
    }
  })

  it('of an entity not yet on the replica come from the primary', async () => {
    const { alice, bob } = await web.people('alice', 'bob')
    await ageTokens()
    await untilUsed()
    await database.standby.hold()
    try {
      const { body: post } = await alice.post('/posts', { public: true, body: 'New to all' })
      const before = factsOf(web.pod).lists
      const { status, body } = await bob.get(`/posts/${post.guid}/comments`)
      expect([status, body]).toEqual([200, []])
      expect(factsOf(web.pod).lists.failed).toBe(before.failed)
      expect(factsOf(web.pod).lists.replica).toBe(before.replica + 1)
    } finally {
      await database.standby.follow()
    }
  })

  it('listeners can read the entities of their events', async () => {
    const { alice, bob } = await web.people('alice', 'bob')
    const workers = startTestWorkers(web.pod, {
      queues: ['notify', 'maintenance'],
      handlers: { notify: notifyHandlers, maintenance: maintenanceHandlers },
    })
    await untilIdle(web.pod, 15_000, ['notify'])
    const address = await listen(web.app, { host: '127.0.0.1', port: 0 }, '')
    const stream = await openEventStream({
      base: new URL(address).origin,
      token: bob.token,
      query: 'types=notification',
    })
    await stream.placed()
    const { body: post } = await bob.post('/posts', { public: true, body: 'Tell me' })
    await ageTokens()
    await untilUsed()
    await database.standby.hold()
    try {
      await alice.post(`/posts/${post.guid}/likes`)
      const [event] = await stream.take(1)
      const { body } = await other.get(bob.token, '/notifications')
      expect(body.map(({ guid }: { guid: string }) => guid)).toContain(event?.data.guid)
    } finally {
      await database.standby.follow()
      stream.close()
      await workers.close()
    }
  })

  it('a new token reads from the primary, because its earlier writes are unknown', async () => {
    const { alice } = await web.people('alice')
    await untilUsed()
    const fresh = await alice.with('contacts:read')
    const before = factsOf(web.pod).lists
    await fresh.get('/aspects')
    expect(factsOf(web.pod).lists).toEqual({ ...before, primary: before.primary + 1 })
  })

  it('are served while the replica dies, from the primary', async () => {
    const { alice } = await web.people('alice')
    await ageTokens()
    await untilUsed()
    const statuses = new Set<number>()
    const gone = database.standby.kill()
    await vi.waitFor(async () => {
      statuses.add((await alice.get('/streams/main')).status)
      expect(factsOf(web.pod).age).toBeUndefined()
    }, SOON)
    await gone
    statuses.add((await alice.get('/streams/main')).status)
    expect([...statuses]).toEqual([200])
    await vi.waitFor(
      () => expect(lines.some(({ level, msg }) => level === 40 && msg.includes('from the primary'))).toBe(true),
      SOON,
    )
  })
})
