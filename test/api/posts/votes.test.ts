import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { blockForUser } from '../../../src/domain/people/blocks.js'
import { type ApiClient, type ApiPerson, type ApiResponse, expectError } from '../../support/pods/api-pod.js'
import { publish, type SampleApiPod, startSampleApiPod } from '../../support/pods/sample-api-pod.js'
import { queueBackends } from '../../support/queues/queue-backends.js'

describe.each(queueBackends)('with the queue in $store', (backend) => {
  let api: SampleApiPod
  let alice: ApiPerson
  let bob: ApiPerson
  /** A poll by Bob without votes, and the ids of its answers. */
  let post: string
  let yes: number
  let no: number
  beforeAll(async () => {
    api = await startSampleApiPod({ queue: backend })
    ;({ alice, bob } = api)
  })
  afterAll(() => api.close())
  beforeEach(async () => {
    post = await publish(api, bob, {
      text: 'Lunch?',
      public: true,
      poll: { question: 'Noon?', answers: ['yes', 'no'] },
    })
    ;[yes, no] = await answersOf(post, bob)
  })

  const vote = (who: ApiClient, answer: unknown, guid = post) =>
    who.post(`/posts/${guid}/vote`, { poll_answer: answer })
  const shownTo = async (reader: ApiPerson, guid: string, author: ApiPerson): Promise<ApiResponse['body']> => {
    const posts: ApiResponse['body'][] = (await reader.get(`/users/${author.guid}/posts`)).body
    return posts.find((each) => each.guid === guid)
  }
  async function answersOf(guid: string, author: ApiPerson): Promise<[number, number]> {
    const { poll } = await shownTo(author, guid, author)
    const [first, second] = poll.poll_answers
    return [first.id, second.id]
  }
  const untouched = {
    participation_count: 0,
    already_participated: false,
    poll_answers: [{ vote_count: 0 }, { vote_count: 0 }],
  }

  it('is counted, and marked as own for the voter', async () => {
    const answer = await vote(alice, yes)

    expect([answer.status, answer.text]).toEqual([204, ''])
    expect((await shownTo(alice, post, bob)).poll).toMatchObject({
      participation_count: 1,
      already_participated: true,
      poll_answers: [
        { id: yes, vote_count: 1, own_answer: true },
        { id: no, vote_count: 0, own_answer: false },
      ],
    })
    expect((await shownTo(bob, post, bob)).poll).toMatchObject({
      participation_count: 1,
      already_participated: false,
      poll_answers: [
        { vote_count: 1, own_answer: false },
        { vote_count: 0, own_answer: false },
      ],
    })
    expect((await shownTo(alice, post, bob)).own_interaction_state.subscribed).toBe(true)
  })

  it('a second one is refused', async () => {
    await vote(alice, yes)

    expectError(await vote(alice, yes), 410)
    expectError(await vote(alice, no), 410)
    expect((await shownTo(alice, post, bob)).poll.participation_count).toBe(1)
  })

  it('an answer that is not part of the poll is rejected, also after a vote', async () => {
    const [black] = await answersOf(api.carolPoll, api.carol)
    const wrong = [black, -1, 0, 1.5, '', 'x', '-1', '1e1', ' 1', null, true, [yes], {}, 2 ** 53, '9'.repeat(15), 1e300]
    for (const answer of wrong) expectError(await vote(alice, answer), 422)
    expectError(await alice.post(`/posts/${post}/vote`, {}), 422)
    expectError(await alice.post(`/posts/${post}/vote`), 422)
    expect((await shownTo(alice, post, bob)).poll).toMatchObject(untouched)

    await vote(alice, yes)
    expectError(await vote(alice, black), 422)
  })

  it('answers 404 for a post without a poll', async () => {
    expectError(await vote(alice, yes, api.bobPost), 422)
  })

  it('needs the scope interactions', async () => {
    expectError(await vote(await alice.with('private:read'), yes), 403)
  })

  it('accepts the id as a text', async () => {
    const answer = await api.call({
      method: 'POST',
      path: `/posts/${post}/vote`,
      token: alice.token,
      body: `poll_answer=${no}`,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    })

    expect(answer.status).toBe(204)
    expect((await shownTo(alice, post, bob)).poll.poll_answers[1]).toMatchObject({ vote_count: 1, own_answer: true })
  })

  it('a vote under a reshare counts in the poll of the root, and subscribes to the reshare', async () => {
    const { guid: reshare } = (await api.dan.post(`/posts/${post}/reshares`)).body

    expect((await vote(alice, yes, reshare)).status).toBe(204)

    expectError(await vote(alice, yes), 410)
    const shown = await shownTo(alice, reshare, api.dan)
    expect(shown).toMatchObject({ own_interaction_state: { subscribed: true }, poll: { already_participated: true } })
    expect((await shownTo(alice, post, bob)).own_interaction_state.subscribed).toBe(false)
  })

  it('a vote in a poll by a person who blocks the voter is rejected and leaves no trace', async () => {
    const { fred, gina } = await api.people('fred', 'gina')
    const poll = { question: 'Noon?', answers: ['yes', 'no'] }
    const theirs = await publish(api, fred, { text: 'Lunch?', public: true, poll })
    const [answer] = await answersOf(theirs, fred)
    await blockForUser(api.pod, fred.viewer, gina.guid)

    expectError(await vote(gina, answer, theirs), 422)

    expect(await shownTo(gina, theirs, fred)).toMatchObject({
      poll: untouched,
      own_interaction_state: { subscribed: false },
    })
  })
})
