import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { UNREAD_LIMITS } from '../../../src/persistence/notifications/limits.js'
import type { ApiPerson, ApiResponse } from '../../support/pods/api-pod.js'
import { type SampleApiPod, startSampleApiPod } from '../../support/pods/sample-api-pod.js'

describe('counts of unread notifications and conversations', () => {
  let api: SampleApiPod
  let alice: ApiPerson
  let bob: ApiPerson
  beforeAll(async () => {
    api = await startSampleApiPod()
    ;({ alice, bob } = api)
  })
  afterAll(() => api.close())

  const countsOf = async (who: ApiPerson) => {
    const { body } = await who.get('/user')
    return [body.unread_notifications, body.unread_conversations, body.unread_messages]
  }
  const headersOf = ({ headers }: ApiResponse) =>
    ['notifications', 'conversations', 'messages'].map((name) => headers[`unread-${name}`])

  it('are updated in the profile and beside notifications', async () => {
    const before = await countsOf(alice)
    await bob.post(`/posts/${api.alicePost}/comments`, { body: 'Well said' })
    const started = await bob.post('/conversations', { subject: 'Hi', body: 'one', recipients: [alice.guid] })
    await bob.post(`/conversations/${started.body.guid}/messages`, { body: 'two' })

    expect(await countsOf(alice)).toEqual([before[0] + 1, 1, 2])
    expect(await countsOf(bob)).toEqual([expect.any(Number), 0, 0])
    const list = await alice.get('/notifications?per_page=1')
    expect(headersOf(list)).toEqual([String(before[0] + 1), '1', '2'])
    expect(headersOf(await (await alice.with('notifications')).get('/notifications'))).toEqual([
      String(before[0] + 1),
      undefined,
      undefined,
    ])

    const [{ guid }] = list.body
    expect(headersOf(await alice.get(`/notifications/${guid}`))).toEqual([String(before[0]), '1', '2'])
    expect(headersOf(await alice.patch(`/notifications/${guid}`, { read: false }))).toEqual([
      String(before[0] + 1),
      '1',
      '2',
    ])
    await alice.patch(`/conversations/${started.body.guid}`, { read: true })
    expect(await countsOf(alice)).toEqual([before[0] + 1, 0, 0])
  })

  it('are sent with a 304 too', async () => {
    const first = await alice.get('/notifications')
    const again = await api.call({
      path: '/notifications',
      token: alice.token,
      headers: { 'if-none-match': String(first.headers.etag) },
    })

    expect([again.status, headersOf(again)]).toEqual([304, headersOf(first)])
  })

  it('are counted up to a limit', async () => {
    const { maxCounted: counted } = UNREAD_LIMITS
    await api.pod.db.raw(
      `insert into notifications (guid, user_id, type, person_id, superseded)
       select 'notification-number-' || n, ?, 'started_sharing', ?, true from generate_series(1, ?) as n`,
      [api.dan.viewer.userId, alice.viewer.personId, counted + 5],
    )

    expect((await countsOf(api.dan))[0]).toBe(counted)
  })
})
