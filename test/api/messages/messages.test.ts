import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { newGuid } from '../../../src/domain/new-guid.js'
import { openClock } from '../../support/assertions/clock.js'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import { type ApiPerson, expectError } from '../../support/pods/api-pod.js'
import type { SampleApiPod } from '../../support/pods/sample-api-pod.js'
import { startSampleApiPod } from '../../support/pods/sample-api-pod.js'
import { queueBackends } from '../../support/queues/queue-backends.js'

const clock = openClock()
let api: SampleApiPod
let alice: ApiPerson
let bob: ApiPerson

describe.each(queueBackends)('with the queue in $store', (backend) => {
  beforeAll(async () => {
    api = await startSampleApiPod({ queue: backend, change: (pod) => ({ ...pod, now: clock.now }) })
    ;({ alice, bob } = api)
  })
  afterAll(() => api.close())

  /** Alice has written to Bob. */
  async function begin(): Promise<string> {
    const answer = await alice.post('/conversations', { subject: 'Tea', body: 'First', recipients: [bob.guid] })
    expect(answer.status).toBe(201)
    return answer.body.guid
  }

  /** A minute later. */
  async function say(person: ApiPerson, guid: string, body: string) {
    clock.later()
    const answer = await person.post(`/conversations/${guid}/messages`, { body })
    expect(answer.status).toBe(201)
    return answer.body
  }

  async function listTexts(guid: string, query = ''): Promise<string[]> {
    const answer = await alice.get(`/conversations/${guid}/messages${query}`)
    expect(answer.status).toBe(200)
    return answer.body.map(({ body }: { body: string }) => body)
  }

  async function readBy(person: ApiPerson, guid: string): Promise<boolean> {
    return (await person.get(`/conversations/${guid}`)).body.read
  }

  describe('POST /conversations/:guid/messages', () => {
    it('adds a message that is unread for the other participants only', async () => {
      const guid = await begin()
      await bob.patch(`/conversations/${guid}`, { read: true })

      const answer = await alice.post(`/conversations/${guid}/messages`, { body: ' **Still** there?\n' })

      expect(answer.status).toBe(201)
      expect(Object.keys(answer.body).sort()).toEqual(['author', 'body', 'created_at', 'guid'])
      expect(answer.body).toMatchObject({
        guid: expect.stringMatching(/^[0-9a-f]{32}$/),
        body: ' **Still** there?\n',
        author: { guid: alice.guid, network_id: 'alice@pod.example' },
      })
      expect([await readBy(alice, guid), await readBy(bob, guid)]).toEqual([true, false])
      expect((await bob.get(`/conversations/${guid}/messages`)).body.at(-1)).toEqual(answer.body)
      const jobs = await api.pod.db('outbox').where({ name: 'dispatch' }).orderBy('id').pluck('data')
      expect(jobs.at(-1)).toEqual({ record: 'message', guid: answer.body.guid })
    })

    it('stays unread for an author who has not read the conversation', async () => {
      const guid = await begin()

      await say(bob, guid, 'Later')

      expect(await readBy(bob, guid)).toBe(false)
    })

    it.each([{}, { body: '' }, { body: ' ' }, { body: 5 }, { body: null }, { body: 'x'.repeat(65_536) }])(
      'is a 422 without a text: %#',
      async (body) => {
        const guid = await begin()

        expectError(await alice.post(`/conversations/${guid}/messages`, body), 422)

        expect(await listTexts(guid)).toEqual(['First'])
      },
    )

    it('is a 422 for a body that cannot be read', async () => {
      const answer = await api.call({
        method: 'POST',
        path: `/conversations/${await begin()}/messages`,
        token: alice.token,
        body: '[1]',
        headers: { 'content-type': 'application/json' },
      })

      expectError(answer, 422)
    })

    it('an unknown conversation is a 404, for every body', async () => {
      for (const body of [undefined, {}, { body: '' }, { body: 5 }, { body: 'x' }]) {
        expectError(await alice.post(`/conversations/${newGuid()}/messages`, body), 404)
      }
    })

    it('stores all of many concurrent messages', async () => {
      const guid = await begin()

      await Promise.all(
        Array.from({ length: 20 }, (_, index) => bob.post(`/conversations/${guid}/messages`, { body: `${index}` })),
      )

      expect((await listTexts(guid, '?per_page=100')).toSorted()).toEqual(
        ['First', ...Array.from({ length: 20 }, (_, index) => `${index}`)].toSorted(),
      )
      const unread = await api.pod.db('conversationVisibilities').where({ unread: 20 }).select('personId')
      expect(unread).toEqual([{ personId: alice.viewer.personId }])
    })
  })

  describe('GET /conversations/:guid/messages', () => {
    it('lists the oldest first, or only messages after a time', async () => {
      const guid = await begin()
      await say(bob, guid, 'Second')
      const [first] = (await alice.get(`/conversations/${guid}/messages`)).body

      expect(await listTexts(guid)).toEqual(['First', 'Second'])
      expect(await listTexts(guid, `?only_after=${first.created_at}`)).toEqual(['Second'])
    })

    it('does not mark the conversation as read', async () => {
      const guid = await begin()

      expect((await bob.get(`/conversations/${guid}/messages`)).status).toBe(200)

      expect(await readBy(bob, guid)).toBe(false)
    })

    it.each(['only_after=foo', 'only_after=2026-01-01T25:00:00Z', 'page=x', 'page=1&page=2', 'per_page=1.5'])(
      'is a 422 for a query of %s',
      async (query) => {
        expectError(await alice.get(`/conversations/${await begin()}/messages?${query}`), 422)
      },
    )

    it('has pages of fifteen with links to all of them', async () => {
      const guid = await begin()
      for (let index = 1; index < 20; index += 1) await say(index % 2 ? bob : alice, guid, `${index}`)

      const first = await alice.get(`/conversations/${guid}/messages`)
      expect(first.body).toHaveLength(15)
      expect(first.links).toEqual({ next: expect.stringMatching(/^https:\/\/pod\.example\/api\/v1\//) })

      const second = await alice.get(first.links.next ?? '')
      expect(second.body.map(({ body }: { body: string }) => body)).toEqual(['15', '16', '17', '18', '19'])
      expect(second.links.next).toBeUndefined()
      expect((await alice.get(second.links.previous ?? '')).body).toEqual(first.body)
    })

    it('is empty after the last page', async () => {
      const guid = await begin()

      expect(await listTexts(guid, '?page=2')).toEqual([])
      expect(await listTexts(guid, '?page=0&per_page=0')).toEqual(['First'])
    })

    it('the list costs two statements, for any number of messages', async () => {
      const guid = await begin()
      for (let index = 0; index < 5; index += 1) await say(bob, guid, `${index}`)
      const ask = (limit: number) =>
        statementsDuring(() => alice.get(`/conversations/${guid}/messages?per_page=${limit}&only_after=2020-01-01`))

      expect([await ask(1), await ask(100)]).toEqual([2, 2])
    })
  })
})
