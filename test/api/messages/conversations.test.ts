import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { closeUser } from '../../../src/domain/accounts/closing/close-now.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { openClock } from '../../support/assertions/clock.js'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { type ApiPerson, type ApiResponse, expectError, readAllPages } from '../../support/pods/api-pod.js'
import { type SampleApiPod, share, startSampleApiPod } from '../../support/pods/sample-api-pod.js'
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

  const conversationFields = (fields: object = {}) => ({
    subject: 'Tea',
    body: 'Shall we?',
    recipients: [bob.guid],
    ...fields,
  })

  /** Alice writes to Bob. */
  async function begin(fields: object = {}): Promise<string> {
    const answer = await alice.post('/conversations', conversationFields(fields))
    expect(answer.status).toBe(201)
    return answer.body.guid
  }

  /** Subjects, in the order of the list. */
  async function list(person: ApiPerson, query = ''): Promise<string[]> {
    const answer = await person.get(`/conversations${query}`)
    expect(answer.status).toBe(200)
    return subjectsIn(answer)
  }

  function subjectsIn({ body }: ApiResponse): string[] {
    return body.map(({ subject }: { subject: string }) => subject)
  }

  async function readBy(person: ApiPerson, guid: string): Promise<boolean> {
    return (await person.get(`/conversations/${guid}`)).body.read
  }

  describe('POST /conversations', () => {
    it('starts a conversation, and returns its participants and no read state', async () => {
      const answer = await alice.post('/conversations', conversationFields())

      expect(answer.status).toBe(201)
      expect(Object.keys(answer.body).sort()).toEqual(['created_at', 'guid', 'participants', 'subject'])
      expect(answer.body).toMatchObject({
        guid: expect.stringMatching(/^[0-9a-f]{32}$/),
        subject: 'Tea',
        participants: [{ guid: alice.guid }, { guid: bob.guid }],
      })
    })

    it.each([
      ['without a subject', { subject: undefined }],
      ['without a body', { body: undefined }],
      ['without recipients', { recipients: undefined }],
      ['with no recipient', { recipients: [] }],
      ['with an unknown recipient', () => ({ recipients: [bob.guid, newGuid()] })],
      ['with a recipient who is not a mutual contact', () => ({ recipients: [bob.guid, api.carol.guid] })],
      ['with a recipient twice', () => ({ recipients: [bob.guid, bob.guid] })],
      ['with oneself', () => ({ recipients: [alice.guid] })],
      ['with oneself beside another', () => ({ recipients: [bob.guid, alice.guid] })],
      ['with a blank body', { body: ' \n' }],
      ['with a blank subject', { subject: '\t' }],
      ['with a subject of 256 characters', { subject: 'x'.repeat(256) }],
      ['with a body of 65 536 characters', { body: 'x'.repeat(65_536) }],
      ['with a recipient that is not a text', { recipients: [5] }],
      ['with recipients that are not a list', () => ({ recipients: bob.guid })],
    ])('%s is a 422, and nothing is stored', async (_how, fields) => {
      const before = await api.pod.db('conversations').count()

      const answer = await alice.post(
        '/conversations',
        conversationFields(typeof fields === 'function' ? fields() : fields),
      )

      expectError(answer, 422)
      expect(await api.pod.db('conversations').count()).toEqual(before)
    })

    it('a closed account as recipient is a 422', async () => {
      const { frieda } = await api.people('frieda')
      await share(api, alice, frieda)
      await share(api, frieda, alice)
      await closeUser(api.pod, 'frieda')

      expectError(await alice.post('/conversations', conversationFields({ recipients: [frieda.guid] })), 422)
    })

    it('is a 422 for a body that cannot be read', async () => {
      const answer = await api.call({
        method: 'POST',
        path: '/conversations',
        token: alice.token,
        body: '{',
        headers: { 'content-type': 'application/json' },
      })

      expectError(answer, 422)
    })

    it('accepts a form, and the two slashes of a known client', async () => {
      const answer = await api.call({
        method: 'POST',
        path: '//conversations',
        token: alice.token,
        body: new URLSearchParams({ subject: 'A form', body: 'x', 'recipients[]': bob.guid }).toString(),
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
      })

      expect([answer.status, answer.body.subject]).toEqual([201, 'A form'])
    })

    it('is sent with its first message to participants on other pods', async () => {
      const quin = await addRemotePerson(api.pod, 'quin@q.example')
      await api.pod
        .db('contacts')
        .insert({ userId: alice.viewer.userId, personId: quin.id, sharing: true, receiving: true })

      const guid = await begin({ recipients: [bob.guid, quin.guid] })

      const jobs = await api.pod.db('outbox').where({ name: 'dispatch' }).orderBy('id').pluck('data')
      expect(jobs.at(-1)).toEqual({ record: 'conversation', guid })
      expect((await alice.get(`/conversations/${guid}/messages`)).body).toMatchObject([{ body: 'Shall we?' }])
    })

    it('creates no notifications', async () => {
      const countNotifications = async () => (await bob.get('/notifications?per_page=100')).body.length
      const before = await countNotifications()

      await begin()

      expect(await countNotifications()).toBe(before)
    })
  })

  describe('GET /conversations', () => {
    it('is read for its author and unread for the other participants', async () => {
      const guid = await begin()

      const seenBy = async (person: ApiPerson) =>
        (await person.get('/conversations')).body.find((one: { guid: string }) => one.guid === guid).read
      expect([await seenBy(alice), await seenBy(bob)]).toEqual([true, false])
    })

    it('lists only unread ones on request', async () => {
      clock.later()
      const guid = await begin({ subject: 'Unread' })
      expect(await list(bob, '?only_unread=true')).toContain('Unread')

      await bob.patch(`/conversations/${guid}`, { read: true })

      expect(await list(bob, '?only_unread=true')).not.toContain('Unread')
      expect(await list(bob, '?only_unread=YES')).not.toContain('Unread')
      expect(await list(bob, '?only_unread=false')).toContain('Unread')
      expect(await list(bob, '?only_unread=false')).toEqual(await list(bob))
    })

    it('lists only conversations with messages after a time', async () => {
      clock.later()
      const guid = await begin({ subject: 'Talk' })
      const between = clock.later()
      clock.later()
      const { body: message } = await bob.post(`/conversations/${guid}/messages`, { body: 'Yes' })

      expect(await list(alice, `?only_after=${between}`)).toEqual(['Talk'])
      expect(await list(alice, `?only_after=${message.created_at}`)).toEqual([])
      await alice.patch(`/conversations/${guid}`, { read: true })
      expect(await list(alice, `?only_after=${message.created_at}`)).toEqual([])
    })

    it.each([
      '?only_after=foo',
      '?only_after=2026-02-30',
      '?only_after=',
      '?only_unread=perhaps',
      '?before=foo',
      '?per_page=x',
    ])('is a 422 for a query of %s', async (query) => {
      expectError(await alice.get(`/conversations${query}`), 422)
    })

    it('accepts a time whose offset has an unencoded plus', async () => {
      clock.later()
      await begin({ subject: 'Offset' })
      const justBefore = new Date(clock.now().getTime() + 3_600_000 - 1).toISOString().replace('Z', '+01:00')

      expect(await list(alice, `?only_after=${justBefore}`)).toEqual(['Offset'])
    })

    it('lists the newest first, in pages without gaps or repetitions within a millisecond', async () => {
      const { gus } = await api.people('gus')
      await share(api, gus, alice)
      await share(api, alice, gus)
      const all: string[] = []
      for (let index = 0; index < 7; index += 1) {
        if (index % 3 === 0) clock.later()
        all.unshift(
          (await gus.post('/conversations', conversationFields({ subject: `${index}`, recipients: [alice.guid] }))).body
            .guid,
        )
      }

      const pages = await readAllPages(gus, '/conversations?per_page=2&only_unread=false')

      expect(pages.map(({ guid }) => guid)).toEqual(all)
      expect((await gus.get('/conversations?per_page=7')).links.next).toBeUndefined()
    })

    it('links to newer conversations, and repeats the filters', async () => {
      const { hal } = await api.people('hal')
      await share(api, hal, bob)
      await share(api, bob, hal)
      clock.later()
      await hal.post('/conversations', conversationFields({ subject: 'First' }))
      const first = await bob.get('/conversations?only_unread=true&per_page=1')
      expect(subjectsIn(first)).toEqual(['First'])

      clock.later()
      for (const subject of ['Second', 'Third']) await hal.post('/conversations', conversationFields({ subject }))

      const newer = await bob.get(first.links.previous ?? '')
      expect(subjectsIn(newer)).toEqual(['Second'])
      expect(new URL(newer.links.next ?? '').searchParams.get('only_unread')).toBe('true')
      const newest = await bob.get(newer.links.next ?? '')
      expect(subjectsIn(newest)).toEqual(['Third'])
      expect(newest.links.next).toBeUndefined()
      expect(subjectsIn(await bob.get(newest.links.previous ?? ''))).toEqual(['Second'])
    })

    it('a user without conversations gets an empty list without links', async () => {
      const answer = await api.eve.get('/conversations')

      expect([answer.body, answer.headers.link]).toEqual([[], undefined])
    })

    it('the list costs two statements, for any number of conversations', async () => {
      const ask = (limit: number) =>
        statementsDuring(() => alice.get(`/conversations?per_page=${limit}&only_after=2020-01-01`))
      expect([await ask(1), await ask(100)]).toEqual([2, 2])
    })
  })

  describe('GET /conversations/:guid', () => {
    it('does not mark the conversation as read', async () => {
      const guid = await begin()

      const answer = await bob.get(`/conversations/${guid}`)

      expect(answer.status).toBe(200)
      expect(answer.body).toMatchObject({ guid, subject: 'Tea', read: false })
      expect(answer.body.participants).toMatchObject([{ guid: alice.guid }, { guid: bob.guid }])
      expect(await readBy(bob, guid)).toBe(false)
    })

    it('a conversation costs two statements', async () => {
      const guid = await begin()
      expect(await statementsDuring(() => alice.get(`/conversations/${guid}`))).toBe(2)
    })
  })

  describe('PATCH /conversations/:guid', () => {
    it('returns a list with the marked conversation', async () => {
      const guid = await begin()

      const answer = await bob.patch(`/conversations/${guid}`, { read: true })

      expect(answer.status).toBe(200)
      expect(answer.body).toMatchObject([{ guid, read: true, subject: 'Tea' }])
      expect(answer.body).toHaveLength(1)
      expect(await readBy(bob, guid)).toBe(true)
    })

    it('marks the conversation as unread for this user only', async () => {
      const guid = await begin()
      await bob.patch(`/conversations/${guid}`, { read: true })

      const answer = await bob.patch(`/conversations/${guid}`, { read: 'false' })

      expect(answer.body).toMatchObject([{ read: false }])
      expect([await readBy(bob, guid), await readBy(alice, guid)]).toEqual([false, true])
    })

    it('is also accepted as PUT', async () => {
      const guid = await begin()

      expect((await bob.put(`/conversations/${guid}`, { read: true })).body).toMatchObject([{ guid, read: true }])
      expectError(await bob.put(`/conversations/${newGuid()}`, {}), 404)
    })

    it.each([
      ['77', {}],
      ['78', { read: 'x' }],
      ['78', { read: null }],
      ['78', { read: 1 }],
      ['78', { read: [true] }],
    ])('%s: is a 422 for %j', async (_case, body) => {
      const guid = await begin()

      expectError(await bob.patch(`/conversations/${guid}`, body), 422)

      expect(await readBy(bob, guid)).toBe(false)
    })

    it('is a 400 for a body that cannot be read', async () => {
      const answer = await api.call({
        method: 'PATCH',
        path: `/conversations/${await begin()}`,
        token: bob.token,
        body: '{"read":',
        headers: { 'content-type': 'application/json' },
      })

      expectError(answer, 400)
    })
  })

  describe('DELETE /conversations/:guid', () => {
    it('removes the conversation for this user only, permanently', async () => {
      const guid = await begin()

      const answer = await alice.delete(`/conversations/${guid}`)

      expect([answer.status, answer.text]).toEqual([204, ''])
      expectError(await alice.get(`/conversations/${guid}`), 404)
      expectError(await alice.delete(`/conversations/${guid}`), 404)
      expect((await bob.get(`/conversations/${guid}`)).status).toBe(200)
      expect((await bob.post(`/conversations/${guid}/messages`, { body: 'Still there?' })).status).toBe(201)
      expectError(await alice.get(`/conversations/${guid}`), 404)
      expect((await alice.get('/conversations?per_page=100')).text).not.toContain(guid)
    })

    it('deletes the conversation when its last participant removes it', async () => {
      const guid = await begin()
      await alice.delete(`/conversations/${guid}`)
      await bob.delete(`/conversations/${guid}`)

      expect(await api.pod.db('conversations').where({ guid })).toEqual([])
    })

    it('only one of concurrent deletions succeeds', async () => {
      const guid = await begin()

      const answers = await Promise.all(Array.from({ length: 20 }, () => bob.delete(`/conversations/${guid}`)))

      expect(answers.map(({ status }) => status).sort()).toEqual([204, ...Array.from({ length: 19 }, () => 404)])
    })
  })

  describe('an unknown conversation', () => {
    const calls = (
      guid: string,
    ): readonly [string, (person: Pick<ApiPerson, 'get' | 'post' | 'patch' | 'delete'>) => Promise<ApiResponse>][] => [
      ['GET', (person) => person.get(`/conversations/${guid}`)],
      ['PATCH', (person) => person.patch(`/conversations/${guid}`, { read: true })],
      ['DELETE', (person) => person.delete(`/conversations/${guid}`)],
      ['GET messages', (person) => person.get(`/conversations/${guid}/messages`)],
      ['POST message', (person) => person.post(`/conversations/${guid}/messages`, { body: 'x' })],
    ]

    it.each(calls(newGuid()))('is a 404 for %s', async (_call, ask) => {
      expectError(await ask(alice), 404)
    })

    it('a conversation of other users is a 404', async () => {
      const guid = await begin()

      for (const [, ask] of calls(guid)) expectError(await ask(api.dan), 404)

      expect(await readBy(bob, guid)).toBe(false)
      expect((await bob.get(`/conversations/${guid}/messages`)).body).toHaveLength(1)
    })

    it('is a 404 before any other error of the request', async () => {
      expectError(await alice.patch(`/conversations/${newGuid()}`, { read: 'x' }), 404)
      expectError(await alice.patch(`/conversations/${'x'.repeat(300)}`, { read: 'x' }), 404)
      expectError(await alice.get(`/conversations/${newGuid()}/messages?only_after=foo&page=x`), 404)
    })

    it('a token without the scope is rejected', async () => {
      const limited = await alice.with('notifications', 'private:read')
      const guid = await begin()

      const answers = [await limited.get('/conversations'), await limited.post('/conversations', conversationFields())]
      for (const [, ask] of calls(guid)) answers.push(await ask(limited))

      for (const answer of answers) {
        expectError(answer, 403)
        expect(answer.body.message).toContain('insufficient_scope')
      }
    })
  })
})

it('a new conversation is read in the response to its creator, with CLIENT_API_DIALECT=diaspora', async () => {
  await using other = await startSampleApiPod({ environment: { CLIENT_API_DIALECT: 'diaspora' } })

  const answer = await other.alice.post('/conversations', { subject: 'Tea', body: 'x', recipients: [other.bob.guid] })

  expect(answer.status).toBe(201)
  expect(answer.body).toMatchObject({ subject: 'Tea', read: true })
  expect((await other.bob.get('/conversations')).body).toMatchObject([{ guid: answer.body.guid, read: false }])
})
