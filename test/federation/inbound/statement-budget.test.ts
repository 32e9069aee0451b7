import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { InboundMessage } from '../../../src/federation/inbound/batch.js'
import { receiveBatch } from '../../../src/federation/inbound/receive-batch.js'
import type { Entity } from '../../../src/protocol/entities/registry.js'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import { addPost } from '../../support/databases/rows.js'
import { commentBy, likeBy, pollWith, postBy, reshareBy, voteBy } from '../../support/federation/entities.js'
import { publicMessage } from '../../support/federation/inbound-messages.js'
import type { LocalUser } from '../../support/people/local-users.js'
import type { RemotePerson } from '../../support/people/remote-people.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

let pod: FederationPod
let ann: LocalUser
let quin: RemotePerson
let remy: RemotePerson
beforeAll(async () => {
  pod = await openFederationPod()
  ;({ ann } = await pod.localUsers('ann'))
  ;({ quin, remy } = await pod.remotePeople('quin', 'remy'))
  await receiveBatch(pod, [publicMessage(quin, postBy(quin))]) // what a process finds out once
})
afterAll(() => pod.close())
beforeEach(() => pod.empty('posts, notifications, outbound_messages, outbox, waiting, tombstones'))

/** Statements that this batch takes, begin and commit included; all of it must be stored. */
async function statementsFor(...messages: readonly InboundMessage[]): Promise<number> {
  const table = ['posts', 'comments', 'likes', 'poll_participations']
  const rows = async () => (await pod.rows(...table)).reduce((sum, count) => sum + count, 0)
  const before = await rows()
  const statements = await statementsDuring(() => receiveBatch(pod, messages), 'worker')
  expect(await rows()).toBe(before + messages.length)
  return statements
}

const byQuin = (entity: Entity) => publicMessage(quin, entity)
const byRemy = (entity: Entity) => publicMessage(remy, entity)

describe('the statements of a lone message:', () => {
  const root = () => postBy(remy, { poll: pollWith('Yes', 'No') })

  it.each<readonly [string, number, () => Promise<InboundMessage>]>([
    ['a post', 7, async () => byQuin(postBy(quin))],
    ['a reshare', 7, async () => byQuin(reshareBy(quin, await here(root())))],
    ['a comment', 8, async () => byRemy(commentBy(quin, await here(root())))],
    ['a comment on a local post, with its relay and notification', 9, async () => byQuin(await commentOnLocalPost())],
    ['a like of a post', 7, async () => byRemy(likeBy(quin, await here(root())))],
    [
      'a like of a comment',
      8,
      async () => {
        const comment = commentBy(quin, await here(root()))
        await receiveBatch(pod, [byRemy(comment)])
        return byRemy(likeBy(quin, comment, { parent_type: 'Comment' }))
      },
    ],
    [
      'a vote',
      7,
      async () => {
        const { poll } = await here(root())
        const [yes] = poll?.poll_answers ?? []
        if (poll === undefined || yes === undefined) throw new Error('There is no poll.')
        return byRemy(voteBy(quin, poll, yes))
      },
    ],
  ])('%s takes at most %i', async (_what, most, make) => {
    const message = await make()

    expect(await statementsFor(message)).toBeLessThanOrEqual(most)
  })

  async function commentOnLocalPost() {
    const post = await addPost(pod, ann)
    return commentBy(quin, { ...postBy(quin), guid: post.guid })
  }

  async function here(post: ReturnType<typeof root>): Promise<typeof post> {
    await receiveBatch(pod, [byRemy(post)])
    return post
  }
})

describe('a batch of 128 takes at most a tenth of a statement for each:', () => {
  const many = <Thing>(make: (index: number) => Thing) => Array.from({ length: 128 }, (_, index) => make(index))

  it('posts', async () => {
    expect(await statementsFor(...many(() => byQuin(postBy(quin))))).toBeLessThanOrEqual(12)
  })

  it('comments under posts of others', async () => {
    const post = postBy(remy)
    await receiveBatch(pod, [byRemy(post)])

    expect(await statementsFor(...many(() => byRemy(commentBy(quin, post))))).toBeLessThanOrEqual(12)
  })

  it('posts with comments and likes', async () => {
    const posts = Array.from({ length: 32 }, () => postBy(remy))
    const comments = posts.map((post) => commentBy(quin, post))
    const likes = posts.map((post) => likeBy(quin, post))
    const liked = comments.map((comment) => likeBy(quin, comment, { parent_type: 'Comment' }))

    expect(await statementsFor(...[...liked, ...likes, ...comments, ...posts].map(byRemy))).toBeLessThanOrEqual(12)
  })
})

describe('everything that can follow', () => {
  it('is no more for many than for one', async () => {
    const full = async (count: number) => {
      const post = await addPost(pod, ann)
      const text = () =>
        `@{${ann.address}} @{${remy.address}} #tag${Math.random()} @{unknown${Math.random()}@s.example}`
      const posts = Array.from({ length: count }, () => postBy(quin, { text: text(), poll: pollWith('Yes', 'No') }))
      const comments = posts.map(() => commentBy(quin, post, { text: text() }))
      const likes = comments.map((comment) => likeBy(quin, comment, { parent_type: 'Comment' }))
      return [...likes, ...comments, ...posts].map(byQuin)
    }
    const few = await full(1)
    const many = await full(40)
    const statements = await statementsFor(...few)

    expect(await statementsFor(...many)).toBe(statements)
  })
})
