import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { freePort } from '../support/http/free-port.js'
import { type CompletePod, startCompletePod, startCompletePods, untilQuiet } from '../support/processes/complete-pod.js'
import { type ApiPerson, openApiPerson, shareWith } from './api-person.js'
import { type LossyProxy, openLossyProxy } from './lossy-proxy.js'

interface Item {
  readonly guid: string
  readonly body: string
}
interface Post extends Item {
  readonly interaction_counters: { readonly comments: number; readonly likes: number; readonly reshares: number }
  readonly poll?: { readonly poll_answers: readonly { readonly id: number; readonly vote_count: number }[] }
}

/**
 * Three pods. A proxy in front of the third pod delays traffic, and loses deliveries or the responses to them. Each test continues with
 * the state of the previous one.
 */
describe('three pods, one behind a network that delays and loses messages', { timeout: 120_000 }, () => {
  let pods: readonly CompletePod[] = []
  let proxy: LossyProxy
  let alice: ApiPerson
  let bob: ApiPerson
  let carol: ApiPerson
  let post: Post
  let mistake: Post

  beforeAll(async () => {
    const [publicPort, port] = [await freePort(), await freePort()]
    proxy = await openLossyProxy(publicPort, port, 42)
    // One job at a time, so that messages are stored in the order of their arrival. Otherwise small batches overtake a slow one.
    const inOrder = { WORKER_CONCURRENCY: 'inbound=1,inbound-private=1' }
    const [[a, b], c] = await Promise.all([startCompletePods(2), startCompletePod({ publicPort, port }, inOrder)])
    pods = [a, b, c]
    ;[alice, bob, carol] = await Promise.all([
      openApiPerson(a, 'alice'),
      openApiPerson(b, 'bob'),
      openApiPerson(c, 'carol'),
    ])
    for (const [pod, other] of [
      [a, bob],
      [a, carol],
      [b, alice],
      [b, carol],
      [c, alice],
      [c, bob],
    ] as const) {
      await pod.json('fetch', other.address)
    }
  }, 120_000)
  afterAll(async () => {
    await proxy?.close()
    await Promise.all(pods.map((pod) => pod.stop()))
  })

  /**
   * Waits until all messages are dispatched and delivered. The command `pods wake` makes delayed attempts due at once.
   */
  async function untilArrived(): Promise<void> {
    do {
      await vi.waitFor(
        async () => {
          for (const pod of pods.slice(0, 2)) {
            expect(await pod.open.db('outbox').whereIn('name', ['dispatch', 'dispatch-relays'])).toEqual([])
          }
          if (!(await isWaiting())) return
          for (const pod of pods.slice(0, 2)) {
            await pod.json('pods', 'wake', carol.pod.host, '--reason', 'The network is back')
          }
          throw new Error('Deliveries are waiting.')
        },
        { timeout: 90_000, interval: 100 },
      )
      await untilQuiet(...pods)
    } while (await isWaiting()) // relays may begin after the first check
  }

  async function isWaiting(): Promise<boolean> {
    const senders = pods.slice(0, 2)
    const waiting = await Promise.all(
      senders.map(({ open }) => open.db('deliveries').where({ state: 'waiting' }).first()),
    )
    return waiting.some((delivery) => delivery !== undefined)
  }

  const publish = (who: ApiPerson, body: string) => who.send<Post>('POST', 'posts', { public: true, body })
  const commentsAt = (who: ApiPerson, guid: string) =>
    who.get<readonly Item[]>(`posts/${guid}/comments?per_page=100`).then((all) => all.map(({ body }) => body))
  /** Bodies of the author's posts as they are stored at carol's pod, in the order of arrival. */
  const arrivedAtCarol = async (author: ApiPerson): Promise<readonly string[]> =>
    carol.pod.open
      .db('posts')
      .join('people', 'people.id', 'posts.authorId')
      .where({ address: author.address })
      .orderBy('posts.id')
      .pluck('text')

  it('contacts are known on both sides', async () => {
    for (const [who, whom] of [
      [alice, carol],
      [carol, alice],
      [bob, carol],
      [carol, bob],
      [bob, alice],
      [alice, bob],
    ] as const) {
      await shareWith(who, whom.guid)
    }
    await untilArrived()

    for (const other of [alice, bob]) {
      expect(await carol.get(`users/${other.guid}`)).toMatchObject({ relationship: { sharing: true, receiving: true } })
    }
  })

  it('twenty posts of one person arrive once each, in the order in which they were written', async () => {
    const bodies = Array.from({ length: 20 }, (_, index) => `Post ${index + 1}`)
    for (const body of bodies) post = await publish(alice, body)
    await untilArrived()

    expect(await arrivedAtCarol(alice)).toEqual(bodies)
  })

  it('a comment of one pod is relayed to the other', async () => {
    await bob.send('POST', `posts/${post.guid}/comments`, { body: 'From bob' })
    await untilArrived()

    expect(await commentsAt(carol, post.guid)).toEqual(['From bob'])
  })

  it('a comment from behind the bad network reaches all pods', async () => {
    await carol.send('POST', `posts/${post.guid}/comments`, { body: 'From carol' })
    await untilArrived()

    for (const who of [alice, bob, carol]) {
      expect((await commentsAt(who, post.guid)).toSorted()).toEqual(['From bob', 'From carol'])
    }
  })

  it('a conversation of ten messages arrives once each', async () => {
    const conversation = await alice.send<Item>('POST', 'conversations', {
      subject: 'Counting',
      body: '1',
      recipients: [carol.guid],
    })
    for (let number = 2; number <= 10; number += 1) {
      await alice.send('POST', `conversations/${conversation.guid}/messages`, { body: String(number) })
    }
    await untilArrived()

    const messages = await carol.get<readonly Item[]>(`conversations/${conversation.guid}/messages?per_page=100`)
    expect(messages.map(({ body }) => Number(body)).toSorted((one, other) => one - other)).toEqual([
      1, 2, 3, 4, 5, 6, 7, 8, 9, 10,
    ])
  })

  it('a retracted like leaves no like', async () => {
    await bob.send('POST', `posts/${post.guid}/likes`)
    await untilArrived()
    await bob.send('DELETE', `posts/${post.guid}/likes`)
    await alice.send('POST', `posts/${post.guid}/likes`)
    await untilArrived()

    expect((await carol.get<Post>(`posts/${post.guid}`)).interaction_counters).toMatchObject({ likes: 1 })
  })

  it('a private post reaches its recipients and no other person', async () => {
    const secret = await alice.send<Post>('POST', 'posts', {
      public: false,
      body: 'For the aspect',
      aspects: [alice.aspect],
    })
    await untilArrived()

    expect(await carol.get(`posts/${secret.guid}`)).toMatchObject({ body: 'For the aspect', public: false })
    expect(await arrivedAtCarol(bob)).toEqual([])
  })

  it('the last of ten profile changes is stored', async () => {
    for (let number = 1; number <= 10; number += 1) await alice.send('PATCH', 'user', { name: `Alice ${number}` })
    await untilArrived()

    expect(await carol.get(`users/${alice.guid}`)).toMatchObject({ name: 'Alice 10' })
  })

  it('each vote is counted once', async () => {
    const question = await alice.send<Post>('POST', 'posts', {
      public: true,
      body: 'A question',
      poll: { question: 'Yes?', poll_answers: ['Yes', 'No'] },
    })
    await untilArrived()
    for (const who of [bob, carol]) {
      const [yes] = (await who.get<Post>(`posts/${question.guid}`)).poll?.poll_answers ?? []
      await who.send('POST', `posts/${question.guid}/vote`, { poll_answer: yes?.id })
    }
    await untilArrived()

    for (const who of [alice, bob, carol]) {
      const votes = (await who.get<Post>(`posts/${question.guid}`)).poll?.poll_answers.map(
        ({ vote_count }) => vote_count,
      )
      expect(votes).toEqual([2, 0])
    }
  })

  it('a reshare arrives with its root', async () => {
    await bob.send('POST', `posts/${post.guid}/reshares`)
    await untilArrived()

    expect((await carol.get<Post>(`posts/${post.guid}`)).interaction_counters).toMatchObject({ reshares: 1 })
  })

  it('posts written while the pod is unreachable arrive in order when it is back', async () => {
    const before = (await arrivedAtCarol(alice)).length
    const bodies = Array.from({ length: 10 }, (_, index) => `Unreachable ${index + 1}`)
    await proxy.disconnect()
    for (const body of bodies) await publish(alice, body)
    await proxy.reconnect()
    await untilArrived()

    expect((await arrivedAtCarol(alice)).slice(before)).toEqual(bodies)
  })

  it('a post that is written and deleted while the pod is unreachable leaves nothing there', async () => {
    await proxy.disconnect()
    mistake = await publish(alice, 'A mistake')
    await alice.send('DELETE', `posts/${mistake.guid}`)
    await proxy.reconnect()
    await untilArrived()

    await expect(carol.get(`posts/${mistake.guid}`)).rejects.toThrow('404')
  })

  it('a deleted post is gone everywhere', async () => {
    await alice.send('DELETE', `posts/${post.guid}`)
    await untilArrived()

    for (const who of [alice, bob, carol]) await expect(who.get(`posts/${post.guid}`)).rejects.toThrow('404')
  })

  it('the network has lost requests and responses, and no work is left', async () => {
    expect(proxy.outcomes).toEqual({
      passed: expect.any(Number),
      'request lost': expect.toSatisfy((count: number) => count > 0),
      'response lost': expect.toSatisfy((count: number) => count > 0),
    })
    for (const pod of pods) {
      expect(await pod.json('dead', 'list')).toEqual([])
      // The retraction of a post whose delivery was lost is sent: the sender cannot know that the post has not arrived.
      expect(await pod.open.db('waiting').whereNot({ waitsFor: `post:${mistake.guid}` })).toEqual([])
      expect(await pod.open.db('deliveries').where({ state: 'dead' })).toEqual([])
    }
  })
})
