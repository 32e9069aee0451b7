import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { addToAspect } from '../../../src/domain/contacts/contacts.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { reasonOf } from '../../support/assertions/refusal-reasons.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { type ApiPerson, expectError } from '../../support/pods/api-pod.js'
import { aspectOf, publish, type SampleApiPod, share, startSampleApiPod } from '../../support/pods/sample-api-pod.js'
import { queueBackends } from '../../support/queues/queue-backends.js'

let api: SampleApiPod

const block = (who: ApiPerson, { guid }: { guid: string }) => who.post(`/users/${guid}/block`)
const unblock = (who: ApiPerson, { guid }: { guid: string }) => who.delete(`/users/${guid}/block`)
const seenBy = async (who: ApiPerson, { guid }: { guid: string }) => (await who.get(`/users/${guid}`)).body

describe.each(queueBackends)('with the queue in $store', (backend) => {
  beforeAll(async () => {
    api = await startSampleApiPod({ queue: backend })
  })
  afterAll(() => api.close())

  describe('POST and DELETE /users/:person_guid/block', () => {
    it('answer 204 without a body', async () => {
      const answer = await block(api.alice, api.eve)

      expect([answer.status, answer.text, answer.headers['content-length']]).toEqual([201, '', '0'])
    })

    it('a second block of the same person is rejected', async () => {
      expectError(await block(api.alice, api.eve), 409)
    })

    it('a block is visible to the blocking user only', async () => {
      expect((await seenBy(api.alice, api.eve)).blocked).toBe(true)
      expect((await seenBy(api.eve, api.alice)).blocked).toBe(false)
      expect((await seenBy(api.dan, api.eve)).blocked).toBe(false)
    })

    it('are listed for the blocking user only, the newest first', async () => {
      await block(api.alice, api.dan)
      const first = await api.alice.get('/blocks?per_page=1')
      const rest = await api.alice.get('/blocks?per_page=1&page=2')

      expect([first.body, rest.body].flat().map(({ guid }) => guid)).toEqual([api.dan.guid, api.eve.guid])
      expect(first.links).toEqual({ next: expect.stringContaining('page=2') })
      expect((await api.eve.get('/blocks')).body).toEqual([])
      await unblock(api.alice, api.dan)
    })

    it('DELETE ends the block', async () => {
      const answer = await unblock(api.alice, api.eve)

      expect([answer.status, answer.text]).toEqual([204, ''])
      expect((await seenBy(api.alice, api.eve)).blocked).toBe(false)
    })

    it('a second DELETE is rejected', async () => {
      expectError(await unblock(api.alice, api.eve), 410)
    })

    it('an unknown guid is a 404', async () => {
      expectError(await block(api.alice, { guid: newGuid() }), 404)
      expectError(await unblock(api.alice, { guid: newGuid() }), 404)
    })

    it('need the scope contacts:modify', async () => {
      const client = await api.alice.with('contacts:read')

      expectError(await client.post(`/users/${api.eve.guid}/block`), 403)
      expectError(await client.delete(`/users/${api.eve.guid}/block`), 403)
      expect((await (await api.dan.with('contacts:modify')).post(`/users/${api.eve.guid}/block`)).status).toBe(201)
    })

    it('refuse a block of the own person', async () => {
      expectError(await block(api.alice, api.alice), 422)
    })

    it('the request body is ignored', async () => {
      const { nat } = await api.people('nat')
      const body = (type: string, text: string) =>
        api.call({
          method: 'POST',
          path: `/users/${nat.guid}/block`,
          token: api.eve.token,
          headers: { 'content-type': type },
          body: text,
        })

      expect((await body('application/json', '')).status).toBe(201)
      expectError(await body('text/plain', 'please'), 409)
      expectError(await body('application/json', '{'), 400)
    })

    it('only one of fifty concurrent requests succeeds', async () => {
      const { ola } = await api.people('ola')
      const fifty = async (ask: () => Promise<{ status: number }>) => {
        const answers = await Promise.all(Array.from({ length: 50 }, ask))
        return answers.map(({ status }) => status).sort()
      }
      const rows = () => api.pod.db('blocks').where({ userId: ola.viewer.userId }).select('personId')

      expect(await fifty(() => block(ola, api.bob))).toEqual([201, ...Array.from({ length: 49 }, () => 409)])
      expect(await rows()).toEqual([{ personId: api.bob.viewer.personId }])
      expect(await fifty(() => unblock(ola, api.bob))).toEqual([204, ...Array.from({ length: 49 }, () => 410)])
      expect(await rows()).toEqual([])
    })

    it('the pod of a remote person is notified', async () => {
      const quin = await addRemotePerson(api.pod, 'quin@q.example')
      await api.pod.db('outbox').delete()

      await block(api.alice, quin)
      await unblock(api.alice, quin)

      const contact = { record: 'contact', userId: api.alice.viewer.userId, personId: quin.id, sharing: false }
      expect(await api.pod.db('outbox').where({ name: 'dispatch' }).orderBy('id').pluck('data')).toEqual([
        { ...contact, blocking: true },
        { ...contact, blocking: false },
      ])
    })
  })

  describe('a standing block', () => {
    it('a block ends sharing in both directions', async () => {
      await block(api.alice, api.bob)
      await block(api.alice, api.carol)

      expect(await seenBy(api.alice, api.bob)).toMatchObject({
        relationship: { receiving: false, sharing: true },
        aspects: [],
        blocked: true,
      })
      expect((await seenBy(api.bob, api.alice)).relationship).toEqual({ receiving: true, sharing: false })
      expect((await seenBy(api.alice, api.carol)).relationship).toEqual({ receiving: false, sharing: true })
    })

    it('the person and their existing posts stay readable', async () => {
      const answer = await api.alice.get(`/users/${api.bob.guid}/posts`)

      expect(answer.body.map(({ guid }: { guid: string }) => guid)).toEqual([
        api.bobPoll,
        api.bobFriendsPost,
        api.bobPost,
      ])
      expect((await api.alice.get(`/posts/${api.bobPost}`)).body).toMatchObject({
        guid: api.bobPost,
        body: 'Post of Bob',
      })
    })

    it('rejects comments, likes and votes of the blocked person, and stores nothing', async () => {
      const postGuid = await publish(api, api.alice, {
        text: 'A question',
        public: true,
        poll: { question: 'Well?', answers: ['y', 'n'] },
      })
      const before = (await api.alice.get(`/users/${api.alice.guid}/posts`)).body[0]

      const answerId: number = before.poll.poll_answers[0].id
      expectError(await api.bob.post(`/posts/${postGuid}/comments`, { body: 'hi' }), 422)
      expectError(await api.bob.post(`/posts/${postGuid}/vote`, { poll_answer: answerId }), 422)
      expectError(await api.bob.post(`/posts/${postGuid}/likes`), 422)

      expect((await api.alice.get(`/users/${api.alice.guid}/posts`)).body[0]).toEqual(before)
    })

    it('notifications caused by that person alone become read', async () => {
      const { pat, ria, sam } = await api.people('pat', 'ria', 'sam')
      const likedBy = async (...people: readonly ApiPerson[]) => {
        const postGuid = await publish(api, pat, { text: 'like me', public: true })
        for (const who of people) await who.post(`/posts/${postGuid}/likes`)
      }
      await likedBy(ria)
      await likedBy(ria, sam)
      const unread = async () => {
        const { body } = await pat.get('/notifications?only_unread=true')
        return body.map((one: { event_creators: { guid: string }[] }) => one.event_creators.map(({ guid }) => guid))
      }
      expect(await unread()).toEqual([[ria.guid, sam.guid], [ria.guid]])

      await block(pat, ria)

      expect(await unread()).toEqual([[ria.guid, sam.guid]])
    })

    it('ending a block does not restore the earlier sharing', async () => {
      await unblock(api.alice, api.bob)

      expect(await seenBy(api.alice, api.bob)).toMatchObject({
        relationship: { receiving: false, sharing: true },
        aspects: [],
        blocked: false,
      })
    })

    it('refuses to add the blocked person to an aspect', async () => {
      await block(api.alice, api.bob)
      const aspectId = await aspectOf(api, api.alice, 'Friends')

      const adding = () => addToAspect(api.pod, api.alice.viewer, { aspectId, personGuid: api.bob.guid })
      expect(await reasonOf(adding())).toBe('person_blocked')
      await unblock(api.alice, api.bob)
      await share(api, api.alice, api.bob)
      expect((await seenBy(api.alice, api.bob)).relationship).toEqual({ receiving: true, sharing: true })
    })
  })
})
