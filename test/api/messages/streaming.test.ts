import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createComment } from '../../../src/domain/interactions/comments.js'
import { createLike } from '../../../src/domain/interactions/likes.js'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { changeRole } from '../../../src/domain/moderation/change-role.js'
import { enqueueLiveEventsAndMails } from '../../../src/domain/notifications/enqueue-live-events.js'
import { blockForUser } from '../../../src/domain/people/blocks.js'
import { insertLiveEventSources } from '../../../src/persistence/notifications/live-event-sources.js'
import { LIVE_LIMITS, type LiveLimits } from '../../../src/web/live/limits.js'
import { buildApp } from '../../../src/web/server/app.js'
import { maintenanceHandlers, prune } from '../../../workers/handlers/maintenance.js'
import { notifyHandlers } from '../../../workers/handlers/notify.js'
import type { RunningWorkers } from '../../../workers/start-workers.js'
import { addLiveEventRows } from '../../support/databases/publish-rows.js'
import { type EventStream, follow, openEventStream } from '../../support/http/event-stream.js'
import { makeStaff } from '../../support/people/staff.js'
import type { ApiClient, ApiPerson } from '../../support/pods/api-pod.js'
import { NO_EVENT_LOOP_LIMIT } from '../../support/pods/build-pod.js'
import { aspectOf, publish, type SampleApiPod, share, startSampleApiPod } from '../../support/pods/sample-api-pod.js'
import { queueBackends } from '../../support/queues/queue-backends.js'
import { startTestWorkers, untilIdle } from '../../support/queues/test-workers.js'

describe.each(queueBackends)('the stream of events, with the queue in $store', (backend) => {
  let api: SampleApiPod
  let alice: ApiPerson
  let bob: ApiPerson
  let carol: ApiPerson
  let eve: ApiPerson
  let workers: RunningWorkers
  let base: string
  beforeAll(async () => {
    api = await startSampleApiPod({ queue: backend })
    ;({ alice, bob, carol, eve } = api)
    workers = startTestWorkers(api.pod, {
      queues: ['notify', 'maintenance'],
      handlers: { notify: notifyHandlers, maintenance: maintenanceHandlers },
    })
    base = await listenAt(api.app)
    await untilAnnounced()
  })
  afterAll(async () => {
    await workers.close()
    await api.close()
  })

  const untilAnnounced = () => untilIdle(api.pod, 15_000, ['notify'])
  const post = (who: ApiPerson, text: string) => publish(api, who, { text, public: true })
  const newest = async (): Promise<string> =>
    String((await api.pod.db('announcements').max('id as id').first())?.['id'])

  interface Options {
    readonly lastEventId?: string
    readonly query?: string
    readonly base?: string
  }

  /** A stream that misses nothing from now on. */
  async function listen(who: Pick<ApiClient, 'token'>, options: Options = {}): Promise<EventStream> {
    const stream = await openEventStream({ base, token: who.token, ...options })
    expect(stream.status).toBe(200)
    if (options.lastEventId === undefined && options.query?.includes('last_event_id') !== true) await stream.placed()
    return stream
  }

  /** Another web process of the same pod, which differs from the first in its limits. */
  async function startSecond(limits: Partial<LiveLimits> = {}) {
    const app = await buildApp(api.pod, { limits: NO_EVENT_LOOP_LIMIT, live: { ...LIVE_LIMITS, ...limits } })
    return { app, base: await listenAt(app), [Symbol.asyncDispose]: () => app.close() }
  }

  it('sends cases without their content to moderators only', async () => {
    const mod = await makeStaff(api, 'live-mod', 'moderator')
    const change = (id: number) =>
      api.pod.db.transaction((transaction) => enqueueLiveEventsAndMails(api.pod, transaction, { cases: [id] }))
    const isAboutMod = async (id: number, is: boolean) => {
      const { id: authorId } = await api.pod.db('people').where({ guid: mod.person.guid }).first('id')
      await api.pod
        .db('moderation_cases')
        .where({ id })
        .update({ authorId: is ? authorId : null })
    }
    const guid = await post(bob, 'Cheap watches')
    await untilAnnounced()
    await using stream = await listen(mod, { query: 'kinds=post,moderation_case' })
    await using other = await listen(mod, { query: 'types=post' })
    for (const query of ['kinds=moderation_case', 'kinds=post,moderation_case']) {
      expect((await openEventStream({ base, token: alice.token, query })).status).toBe(403)
    }

    expect((await alice.post(`/posts/${guid}/report`, { reason: 'Spam' })).status).toBe(204)
    const [reported] = await stream.take(1)
    const id = reported?.data.id
    expect(reported).toMatchObject({
      type: 'moderation_case',
      data: { id, state: 'open', kind: 'report', reports: 1 },
    })
    expect(Object.keys(reported?.data)).toEqual(['id', 'state', 'kind', 'reports'])
    await mod.post(`/cases/${id}/take`)
    expect((await stream.take(1))[0]?.data).toMatchObject({ id, state: 'taken' })

    await isAboutMod(id, true)
    await change(id)
    await untilAnnounced()
    const own = await post(mod.person, 'After a case about the moderator')
    expect((await stream.take(1))[0]?.data).toMatchObject({ guid: own })

    await isAboutMod(id, false)
    await changeRole(api.pod, COMMAND_ACTOR, mod.person.guid, { role: 'none', reason: 'Over', confirm: 'live-mod' })
    await change(id)
    await untilAnnounced()
    const last = await post(mod.person, 'After the loss of the role')
    expect((await stream.take(1))[0]?.data).toMatchObject({ guid: last })
    const [first, second] = await other.take(2)
    expect([first?.data.guid, second?.data.guid]).toEqual([own, last])
  })

  it('ends at once for a locked account, and has no posts of a silenced person for those who do not follow them', async () => {
    const mod = await makeStaff(api, 'silencing-mod', 'moderator')
    const { hugo, ivy } = await api.people('hugo', 'ivy')
    await share(api, bob, hugo)
    await using stream = await listen(alice, { query: 'types=post' })
    await using following = await listen(bob, { query: 'types=post' })
    await using own = await listen(hugo, { query: 'types=post' })
    await using other = await listen(ivy, { query: 'types=post' })
    const mention = 'Hello @{alice@pod.example}'

    const heard = await post(hugo, mention)
    expect((await stream.take(1)).map(({ data }) => data.guid)).toEqual([heard])
    const action = await mod.post(`/people/${hugo.guid}/silence`, { reason: 'Spam' })
    expect(action.body).toMatchObject({ changed: true })
    const unheard = await post(hugo, mention)
    expect((await following.take(2)).map(({ data }) => data.guid)).toEqual([heard, unheard])
    const last = await post(alice, 'After it')

    expect((await stream.take(1)).map(({ data }) => data.guid)).toEqual([last])
    expect((await following.take(1)).map(({ data }) => data.guid)).toEqual([last])
    await mod.post(`/people/${hugo.guid}/lock`, { reason: 'Spam' })
    expect(await own.ended).toBe('ended')
    expect((await openEventStream({ base, token: hugo.token })).status).toBe(401)
    await post(bob, 'After the lock')
    await untilAnnounced()
    expect((await openEventStream({ base, token: ivy.token })).status).toBe(200)
    other.close()
  })

  it('declares its media type to clients and proxies', async () => {
    await using stream = await listen(alice)

    expect(stream.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'private, no-store',
      'x-accel-buffering': 'no',
      'access-control-allow-origin': '*',
    })
    expect(stream.retry).toBeGreaterThanOrEqual(LIVE_LIMITS.retryMs)
  })

  it('sends a new post in the form of its list', async () => {
    await using stream = await listen(alice)

    const location = { address: 'Home', lat: '1', lng: '-2.5' }
    const guid = await publish(api, bob, { text: 'Hello, *Alice*', public: true, location })

    const [event] = await stream.take(1)
    const [first] = (await alice.get(`/users/${bob.guid}/posts?per_page=1`)).body
    expect(first.guid).toBe(guid)
    expect(event).toMatchObject({ type: 'post', data: first })
  })

  it('sends a reshare with its root, also to the other devices of the resharing user', async () => {
    const guid = await post(eve, 'Look at this')
    await untilAnnounced()
    await using stream = await listen(bob)

    expect((await bob.post(`/posts/${guid}/reshares`)).status).toBe(200)

    const [event] = await stream.take(1)
    expect(event).toMatchObject({ type: 'post', data: { post_type: 'Reshare', root: { guid, body: 'Look at this' } } })
  })

  it('sends a notification, and again when another person is added to it', async () => {
    const guid = await post(alice, 'What do you think?')
    await untilAnnounced()
    await using stream = await listen(alice, { query: 'types=notification' })

    await createComment(api.pod, bob.viewer, { postGuid: guid, text: 'Nothing' })
    const [first] = await stream.take(1)
    await createComment(api.pod, carol.viewer, { postGuid: guid, text: 'A lot' })
    const [second] = await stream.take(1)

    const [listed] = (await alice.get('/notifications?per_page=1')).body
    expect(second).toMatchObject({ type: 'notification', data: listed })
    expect(second?.data.event_creators.map(({ guid }: { guid: string }) => guid)).toEqual([bob.guid, carol.guid])
    expect(first?.data).toMatchObject({ guid: listed.guid, type: 'commented_on_post', target: { guid } })
    expect(first?.data.event_creators).toHaveLength(1)
  })

  it('sends a message to both participants, also the first one of a conversation', async () => {
    await using hers = await listen(alice, { query: 'types=message' })
    await using his = await listen(bob, { query: 'types=message' })
    const body = { subject: 'Lunch', body: 'Hungry?', recipients: [bob.guid] }

    const { guid } = (await alice.post('/conversations', body)).body
    await untilAnnounced()
    await bob.post(`/conversations/${guid}/messages`, { body: 'Always' })

    const listed = (await alice.get(`/conversations/${guid}/messages`)).body
    expect(listed).toMatchObject([{ body: 'Hungry?' }, { body: 'Always' }])
    for (const stream of [hers, his]) {
      const told = (await stream.take(2)).map(({ type, data }) => ({ type, data }))
      const expected = listed.map((message: object) => ({
        type: 'message',
        data: { ...message, conversation_guid: guid },
      }))
      expect(told).toEqual(expected)
    }
  })

  describe('shows a post only to those who have it in their main stream:', () => {
    /** The posts that a listener receives; the last one is public. */
    async function heardBy(who: Pick<ApiClient, 'token'>, write: () => Promise<unknown>): Promise<string[]> {
      await using stream = await listen(who, { query: 'types=post' })
      await write()
      await untilAnnounced()
      const last = await post(alice, 'The end')
      const heard: string[] = []
      for (let body = ''; body !== 'The end'; ) {
        const [event] = await stream.take(1)
        body = event?.data.body
        if (event?.data.guid !== last) heard.push(body)
      }
      return heard
    }
    const ofBobs = async () => {
      await publish(api, bob, { text: 'For friends', public: false, aspectIds: [await aspectOf(api, bob, 'Friends')] })
      await publish(api, bob, { text: 'For work', public: false, aspectIds: [await aspectOf(api, bob, 'Work')] })
      await post(bob, 'For all')
    }

    it('private posts shared with them', async () => {
      expect((await heardBy(alice, ofBobs)).toSorted()).toEqual(['For all', 'For friends'])
    })

    it('nothing private without the scope for it', async () => {
      expect(await heardBy(await alice.with('notifications'), ofBobs)).toEqual(['For all'])
    })

    it('no post by an unknown person, unless it mentions them or has a tag that they follow', async () => {
      expect(await heardBy(alice, () => post(eve, 'Nobody knows me'))).toEqual([])
      expect(await heardBy(alice, () => post(eve, `@{${alice.address}} hello`))).toEqual([`@{${alice.address}} hello`])
      const tagged = `#tag${Math.random().toString(36).slice(2)}`
      expect((await alice.post('/tag_followings', { name: tagged })).status).toBe(204)
      expect(await heardBy(alice, () => post(eve, tagged))).toEqual([tagged])
    })

    it('no hidden post, and no post by a person whom they block', async () => {
      const { dan } = api
      const follows = await dan.with('private:read', 'interactions')
      await share(api, dan, bob)
      await share(api, dan, alice)
      await share(api, dan, carol)
      await blockForUser(api.pod, dan.viewer, carol.guid)
      const before = await newest()
      const hidden = await post(bob, 'A spoiler')
      expect((await follows.post(`/posts/${hidden}/hide`, { hide: true })).status).toBe(204)
      await post(carol, 'Buy cheap watches')
      await post(bob, 'Good morning')
      await untilAnnounced()

      await using stream = await listen(dan, { query: 'types=post', lastEventId: before })
      expect((await stream.take(1)).map(({ data }) => data.body)).toEqual(['Good morning'])
    })
  })

  describe('after an interruption', () => {
    it('sends all events since the last one, in order and once, and continues', async () => {
      await using stream = await listen(alice, { query: 'types=post' })
      await post(bob, 'One')
      const [first] = await stream.take(1)
      const two = await post(bob, 'Two')
      expect((await stream.take(1)).map(({ data }) => data.guid)).toEqual([two])
      stream.close()
      const missed: string[] = []
      for (let number = 0; number < 250; number += 1) missed.push(await post(bob, `Missed ${number}`))
      await untilAnnounced()

      await using later = await listen(alice, { query: 'types=post', lastEventId: String(first?.id) })
      const after = await post(bob, 'Three')

      const told = await later.take(252)
      expect(told.map(({ data }) => data.guid).toSorted()).toEqual([two, ...missed, after].toSorted())
      expect(ids(told)).toEqual(ascending(told))
    })

    it('reads the last event id from the query too', async () => {
      const before = await newest()
      const guid = await post(bob, 'In the query')
      await untilAnnounced()

      await using stream = await listen(alice, { query: `types=post&last_event_id=${before}` })

      expect((await stream.take(1)).map(({ data }) => data.guid)).toEqual([guid])
    })

    it('omits deleted entities', async () => {
      const before = await newest()
      const gone = await post(bob, 'Never mind')
      const there = await post(bob, 'Still here')
      await untilAnnounced()
      expect((await bob.delete(`/posts/${gone}`)).status).toBe(204)

      await using stream = await listen(alice, { query: 'types=post', lastEventId: before })

      expect((await stream.take(1)).map(({ data }) => data.guid)).toEqual([there])
    })

    it('sends an id to resume from before the first event', async () => {
      await using stream = await listen(alice)
      const place = stream.lastEventId
      stream.close()
      const guid = await post(bob, 'While you were away')
      await untilAnnounced()

      await using later = await listen(alice, { lastEventId: place })

      expect((await later.take(1)).map(({ data }) => data.guid)).toEqual([guid])
    })

    it.each([
      ['what we cannot read', 'unknown', async () => 'yesterday'],
      ['an id that no event has had', 'unknown', async () => String(Number(await newest()) + 1_000)],
    ])('sends a gap event after %s', async (_what, reason, place) => {
      await using stream = await listen(alice, { lastEventId: await place() })

      const [reset] = await stream.take(1)
      expect(reset).toEqual({ id: await newest(), type: 'reset', data: { reason } })
      const guid = await post(bob, 'After the gap')
      expect((await stream.take(1)).map(({ data }) => data.guid)).toEqual([guid])
    })

    it('sends a gap event when too many events were missed', async () => {
      await using second = await startSecond({ maxMissedEvents: 150 })
      const before = await newest()
      for (let number = 0; number < 260; number += 1) await post(bob, `Too many ${number}`)
      await untilAnnounced()

      await using stream = await listen(alice, { lastEventId: before, base: second.base })

      const told = await stream.take(201)
      expect(told.at(-1)).toEqual({ id: await newest(), type: 'reset', data: { reason: 'too_many' } })
      expect(told.filter(({ type }) => type === 'reset')).toHaveLength(1)
    })

    it('sends a gap event for an id that is too old, and only then', async () => {
      const long = await newest()
      await post(bob, 'Long ago')
      await untilAnnounced()
      const newestId = await newest()
      await api.pod.db('announcements').update({ createdAt: new Date(Date.now() - 49 * 3_600_000) })
      await prune(api.pod)
      expect(await api.pod.db('announcements').pluck('id')).toEqual([Number(newestId)])
      const guid = await post(bob, 'Today')
      await untilAnnounced()

      await using late = await listen(alice, { lastEventId: String(Number(long) - 1) })
      expect((await late.take(1))[0]).toMatchObject({ type: 'reset', data: { reason: 'too_old' } })
      await using inTime = await listen(alice, { lastEventId: newestId })
      expect((await inTime.take(1)).map(({ data }) => data.guid)).toEqual([guid])
    })

    it('keeps all events later than the retained ones, including those of earlier transactions', async () => {
      await post(bob, 'Just in time')
      await untilAnnounced()
      const inTime = await newest()
      await post(bob, 'Waited for its turn')
      await untilAnnounced()
      await api.pod
        .db('announcements')
        .whereNot({ id: Number(inTime) })
        .update({ createdAt: new Date(Date.now() - 49 * 3_600_000) })
      await post(bob, 'Later')
      await untilAnnounced()

      await prune(api.pod)

      const kept = await api.pod.db('announcements').orderBy('id').pluck('id')
      expect(kept).toHaveLength(3)
      expect(kept[0]).toBe(Number(inTime))
    })

    it('a client with a newer id gets no event twice', async () => {
      await using others = await listen(alice, { query: 'types=post' })
      const before = await newest()
      const { id } = await api.pod.db('posts').where({ guid: api.bobPost }).first('id')
      // Without the signal: the others do not know of it yet.
      const rows = await addLiveEventRows(api.pod.db, [{ posts: [id] }])
      await insertLiveEventSources(api.pod.db, rows, { channel: 'unheard', payload: '' })

      await using ahead = await listen(alice, { query: 'types=post', lastEventId: before })
      expect((await ahead.take(1)).map(({ data }) => data.guid)).toEqual([api.bobPost])
      expect((await others.take(1)).map(({ data }) => data.guid)).toEqual([api.bobPost])
      const guid = await post(bob, 'For all of them')
      for (const stream of [ahead, others]) {
        expect((await stream.take(1)).map(({ data }) => data.guid)).toEqual([guid])
      }
    })

    it('loses nothing and repeats nothing, however often that is, while others write at both web processes', async () => {
      await using second = await startSecond()
      const bases = [base, second.base]
      let turn = 0
      const follower = follow(() => ({ base: bases[turn++ % 2] ?? base, token: alice.token, query: 'types=post' }))
      await follower.until(() => follower.connections > 0 && follower.placed)

      const written: string[] = []
      const write = async () => {
        for (let number = 0; number < 60; number += 1) {
          written.push(await post(bob, 'Again and again'))
          if (number % 7 === 0) follower.interrupt()
        }
      }
      await Promise.all([write(), write(), write()])
      await follower.until((events) => events.length >= written.length)
      follower.close()

      expect(follower.connections).toBeGreaterThan(3)
      expect(follower.events.map(({ data }) => data.guid).toSorted()).toEqual(written.toSorted())
      expect(ids(follower.events)).toEqual(ascending(follower.events))
    })
  })

  describe('who may listen', () => {
    const ask = (token: string, query = '') => openEventStream({ base, token, query })

    it('requires a valid token', async () => {
      const stream = await ask('f'.repeat(64))

      expect(stream.status).toBe(401)
    })

    it('sends the kinds of events that the scopes allow', async () => {
      const few = await alice.with('contacts:read')
      const refused = await ask(few.token, 'types=post,message')
      expect(refused.status).toBe(403)
      expect(refused.headers['www-authenticate']).toContain('scope="conversations"')

      await using stream = await listen(few)
      const { guid } = (await bob.post('/conversations', { subject: 'Psst', body: 'Secret', recipients: [alice.guid] }))
        .body
      await createLike(api.pod, bob.viewer, { postGuid: api.alicePost })
      const post = await publish(api, bob, { text: 'Public', public: true })
      expect(guid).toBeDefined()
      expect((await stream.take(1)).map(({ data }) => data.guid)).toEqual([post])
    })

    it.each(['types=everything', 'types=', 'types=post&types=message'])(
      'unknown event types are rejected: %s',
      async (query) => {
        expect((await ask(alice.token, query)).status).toBe(422)
      },
    )

    it('limits the number of listeners', async () => {
      await using second = await startSecond({ listenersOfUser: 2, listeners: 3 })
      const open = (who: ApiPerson) => openEventStream({ base: second.base, token: who.token })
      await using one = await open(alice)
      await using two = await open(alice)
      expect([one.status, two.status, (await open(alice)).status]).toEqual([200, 200, 429])
      await using three = await open(bob)
      const full = await open(bob)
      expect([three.status, full.status, full.headers['retry-after']]).toEqual([200, 503, '10'])

      three.close()
      await expect.poll(() => second.app.live.listeners).toBe(2)
      await using four = await open(bob)
      expect(four.status).toBe(200)
    })

    it('a revoked token receives no more events, and its stream ends', async () => {
      await using second = await startSecond({ tokensAgainMs: 50 })
      await using told = await listen(carol)
      await using silent = await listen(carol, { base: second.base })

      await api.pod.db('accessTokens').whereIn('authorizationId', tokensOf(carol)).delete()
      await post(carol, 'Nobody hears me')

      expect(await silent.ended).toBe('ended')
      expect(await told.ended).toBe('ended')
      expect([told.events, silent.events]).toEqual([[], []])
    })

    it('follows changes of the scopes of the authorization', async () => {
      const client = await bob.with('conversations', 'private:read')
      await using stream = await listen(client)
      await api.pod
        .db('authorizations')
        .where({ userId: bob.viewer.userId })
        .whereRaw('cardinality(scopes) = 4')
        .update({ scopes: ['openid'] })

      await alice.post('/conversations', { subject: 'Psst', body: 'Secret', recipients: [bob.guid] })
      await publish(api, alice, { text: 'Private', public: false, aspectIds: [api.friendsAspectId] })
      const guid = await post(alice, 'Public')

      expect((await stream.take(1)).map(({ data }) => data.guid)).toEqual([guid])
    })

    function tokensOf({ viewer }: ApiPerson) {
      return api.pod.db('authorizations').where({ userId: viewer.userId }).select('id')
    }
  })

  it('sends a heartbeat with the id to resume from', async () => {
    await using second = await startSecond({ heartbeatMs: 20 })
    await using stream = await listen(eve, { base: second.base })
    const place = stream.lastEventId
    await post(bob, 'Not for Eve')
    await untilAnnounced()

    await expect.poll(() => stream.lastEventId).toBe(await newest())
    expect(Number(place)).toBeLessThan(Number(stream.lastEventId))
    expect(stream.events).toEqual([])
    expect(stream.comments).toBeGreaterThan(0)
  })

  it('buffers nothing for a client that does not read, and sends all events when it does', async () => {
    await using second = await startSecond({ unsentBytes: 1_000 })
    await using slow = await listen(alice, { base: second.base, query: 'types=post' })
    await using quick = await listen(alice, { base: second.base, query: 'types=post' })
    slow.pause()
    const text = 'x'.repeat(60_000)
    const written: string[] = []
    for (let number = 0; number < 120; number += 1) written.push(await post(bob, text))

    const told = await quick.take(120)
    slow.resume()
    const late = await slow.take(120)

    expect(told.map(({ data }) => data.guid).toSorted()).toEqual(written.toSorted())
    expect(late).toEqual(told)
  })

  it('cuts off a client that does not read for too long; the client may connect again', async () => {
    await using second = await startSecond({ unsentBytes: 1_000, drainMs: 50 })
    await using slow = await listen(alice, { base: second.base, query: 'types=post' })
    const place = slow.lastEventId
    slow.pause()
    const text = 'x'.repeat(60_000)
    const written: string[] = []
    for (let number = 0; number < 120; number += 1) written.push(await post(bob, text))
    await expect.poll(() => second.app.live.listeners).toBe(0)

    await using back = await listen(alice, { query: 'types=post', lastEventId: place })
    expect((await back.take(120)).map(({ data }) => data.guid).toSorted()).toEqual(written.toSorted())
  })

  it('ends with the process, and rejects new listeners', async () => {
    const second = await startSecond()
    await using stream = await listen(alice, { base: second.base })

    const closed = second.app.close()

    expect(await stream.ended).toBe('ended')
    await closed
    expect(second.app.live.refusalOf(alice.viewer)).toBe('full')
  })
})

async function listenAt(app: { listen(options: object): Promise<string>; readonly server: { address(): unknown } }) {
  await app.listen({ port: 0, host: '127.0.0.1' })
  return `http://127.0.0.1:${(app.server.address() as AddressInfo).port}` // it listens on a port
}

function ids(events: readonly { readonly id: string }[]): readonly number[] {
  return events.map(({ id }) => Number(id))
}

function ascending(events: readonly { readonly id: string }[]): readonly number[] {
  return [...new Set(ids(events))].toSorted((one, other) => one - other)
}
