import type { Knex } from 'knex'
import { afterAll, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest'
import { SCOPES } from '../../../src/domain/accounts/scopes.js'
import { deleteComment } from '../../../src/domain/posts/deletions.js'
import { attachDiscoveredPerson } from '../../../src/federation/inbound/mentioned-people.js'
import type { EntityKey } from '../../../src/jobs/waiting/entity-key.js'
import { lockEntityKeys } from '../../../src/jobs/waiting/lock-entity-keys.js'
import { Post } from '../../../src/persistence/models/post.js'
import type { Entity } from '../../../src/protocol/entities/registry.js'
import type { RetractionEntity } from '../../../src/protocol/entities/retraction.js'
import { addPost } from '../../support/databases/rows.js'
import { commentBy, likeBy, photoBy, pollWith, postBy, voteBy } from '../../support/federation/entities.js'
import { allStored, privateMessage, publicMessage, receive } from '../../support/federation/inbound-messages.js'
import type { LocalUser } from '../../support/people/local-users.js'
import type { RemotePerson } from '../../support/people/remote-people.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

let pod: FederationPod
let ann: LocalUser
let quin: RemotePerson
beforeAll(async () => {
  pod = await openFederationPod()
  ;({ ann } = await pod.localUsers('ann'))
})
afterAll(() => pod.close())
beforeEach(async () => {
  await pod.empty('posts, photos, notifications, contacts, outbound_messages, outbox, waiting, tombstones')
  ;({ quin } = await pod.remotePeople('quin'))
})

/** Runs while a transaction holds what it is given, and lets go of it afterwards. */
async function whileHeld<Result>(
  hold: (transaction: Knex.Transaction) => Promise<unknown>,
  run: (transaction: Knex.Transaction) => Promise<Result>,
): Promise<Result> {
  return pod.db.transaction(async (transaction) => {
    await hold(transaction)
    return run(transaction)
  })
}

const whileLocked = <Result>(thing: EntityKey, run: () => Promise<Result>) =>
  whileHeld((transaction) => lockEntityKeys(transaction, [thing]), run)

/** What transactions of this pod wait for, one entry for each. */
async function stuckOn(): Promise<readonly string[]> {
  const { rows } = await pod.db.raw(
    `select wait_event from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
  )
  return rows.map((row: { wait_event: string }) => row.wait_event)
}

const untilStuck = (...on: readonly string[]) =>
  vi.waitFor(async () => expect((await stuckOn()).toSorted()).toEqual(on), { interval: 10 })

/** What is awaited later must not be unhandled until then. */
function started<Result>(work: Promise<Result>): { readonly work: Promise<Result> } {
  work.catch(() => {})
  return { work }
}

const asViewer = ({ userId, id }: LocalUser) => ({ userId, personId: id, scopes: new Set(SCOPES) })

const retractionOf = (target_type: RetractionEntity['target_type'], { guid }: { readonly guid: string }) =>
  ({ type: 'retraction', author: quin.address, target_guid: guid, target_type }) as const

describe('a repeated message that arrives during its retraction', () => {
  it.each<readonly [string, RetractionEntity['target_type'], () => Promise<Entity & { readonly guid: string }>]>([
    ['post', 'Post', async () => postBy(quin)],
    ['photo', 'Photo', async () => photoBy(quin)],
    ['comment', 'Comment', async () => commentBy(quin, await addPost(pod, ann))],
    ['like', 'Like', async () => likeBy(quin, await addPost(pod, ann))],
    [
      'poll_participation',
      'PollParticipation',
      async () => {
        const poll = pollWith('Yes', 'No')
        const remy = await pod.addRemotePerson('remy@r.example')
        await receive(pod, publicMessage(remy, postBy(remy, { poll })))
        await pod.db('posts').update({ authorId: ann.id })
        const [yes] = poll.poll_answers
        if (yes === undefined) throw new Error('There is no answer.')
        return voteBy(quin, poll, yes)
      },
    ],
    [
      'participation',
      'Participation',
      async () => {
        const { guid } = await addPost(pod, ann)
        const about = { parent_guid: guid, parent_type: 'Post' } as const
        return { type: 'participation', author: quin.address, guid: guid.toUpperCase(), ...about }
      },
    ],
  ])('stays away: %s', async (kind, target, make) => {
    const entity = await make()
    const thing = `${kind}:${entity.guid}` as EntityKey // the kinds above are such
    const table = `${kind}s`
    const [before] = await pod.rows(table)
    expect(await receive(pod, publicMessage(quin, entity))).toEqual(allStored)

    const { retraction, repeat } = await whileLocked(thing, async () => {
      const retraction = started(receive(pod, publicMessage(quin, retractionOf(target, entity))))
      await untilStuck('advisory')
      const repeat = started(receive(pod, publicMessage(quin, entity)))
      await untilStuck('advisory', 'advisory')
      return { retraction, repeat }
    })

    expect(await retraction.work).toEqual(allStored)
    expect((await repeat.work).rejected).toEqual([])
    expect(await pod.rows(table)).toEqual([before])
  })

  it('is not stored again when the author of the local post has deleted it', async () => {
    const post = await addPost(pod, ann)
    const comment = commentBy(quin, post)
    await receive(pod, publicMessage(quin, comment))

    const { deletion, repeat } = await whileLocked(`comment:${comment.guid}`, async () => {
      const deletion = started(deleteComment(pod, asViewer(ann), { postGuid: post.guid, commentGuid: comment.guid }))
      await untilStuck('advisory')
      const repeat = started(receive(pod, publicMessage(quin, comment)))
      await untilStuck('advisory', 'advisory')
      return { deletion, repeat }
    })

    await deletion.work
    expect(await repeat.work).toEqual({ ...allStored, ignored: 1 })
    expect(await pod.rows('comments')).toEqual([0])
    expect(await Post.query(pod.db).findById(post.id)).toMatchObject({ commentsCount: 0 })
  })
})

describe('a text that is deleted during the discovery of a mentioned person', () => {
  it.each(['posts', 'comments'] as const)('is let be: %s', async (table) => {
    const post = await addPost(pod, ann)
    await receive(pod, publicMessage(quin, commentBy(quin, post)))
    const ids: number[] = await pod.db(table).pluck('id')
    const work = { data: {}, payload: undefined, acceptedAt: undefined, finish: async () => {} }

    const { mention } = await whileHeld(
      (transaction) => transaction(table).delete(),
      async () => {
        const mention = started(attachDiscoveredPerson(pod, work, quin, { posts: [], comments: [], [table]: ids }))
        await untilStuck('transactionid')
        return { mention }
      },
    )

    await mention.work
    expect(await pod.rows('mentions')).toEqual([0])
  })
})

describe('a person who closes their account while their message arrives', () => {
  const deletion = () => publicMessage(quin, { type: 'account_deletion', author: quin.address })

  it('loses the post', async () => {
    const post = postBy(quin)

    const { arrival } = await whileLocked(`post:${post.guid}`, async () => {
      const arrival = started(receive(pod, publicMessage(quin, post)))
      await untilStuck('advisory')
      expect(await receive(pod, deletion())).toEqual(allStored)
      return { arrival }
    })

    expect(await arrival.work).toEqual({ ...allStored, ignored: 1 })
    expect(await pod.rows('posts')).toEqual([0])
  })

  it('takes along a post that is being stored', async () => {
    const { arrival, leaving } = await whileHeld(
      (transaction) => transaction('people').where({ id: ann.id }).forUpdate().select('id'),
      async () => {
        // A mention of ann waits for her row when its post is stored already.
        const arrival = started(receive(pod, publicMessage(quin, postBy(quin, { text: `@{${ann.address}}` }))))
        await untilStuck('transactionid')
        const leaving = started(receive(pod, deletion()))
        await untilStuck('transactionid', 'transactionid')
        return { arrival, leaving }
      },
    )

    await arrival.work
    expect(await leaving.work).toEqual(allStored)
    expect(await pod.rows('posts')).toEqual([0])
  })

  it('is not mentioned where they have just been found', async () => {
    const post = await addPost(pod, ann, { text: `@{${quin.address}}` })
    const work = { data: {}, payload: undefined, acceptedAt: undefined, finish: async () => {} }

    const { mention } = await whileHeld(
      async (transaction) => {
        await transaction('people').where({ id: quin.id }).forUpdate().select('id')
        await transaction('people').where({ id: quin.id }).update({ closedAt: new Date() })
      },
      async () => {
        const mention = started(attachDiscoveredPerson(pod, work, quin, { posts: [post.id], comments: [] }))
        await untilStuck('transactionid')
        return { mention }
      },
    )

    await mention.work
    expect(await pod.rows('mentions')).toEqual([0])
  })

  it('shares with no user', async () => {
    const { arrival } = await whileHeld(
      async (transaction) => {
        await transaction('people').where({ id: quin.id }).forUpdate().select('id')
        await transaction('people').where({ id: quin.id }).update({ closedAt: new Date() })
      },
      async () => {
        const contact = { type: 'contact', author: quin.address, recipient: ann.address } as const
        const message = privateMessage(quin, ann, { ...contact, following: true, sharing: true, blocking: false })
        const arrival = started(receive(pod, message))
        await untilStuck('transactionid')
        return { arrival }
      },
    )

    await arrival.work
    expect(await pod.rows('contacts', 'notifications')).toEqual([0, 0])
  })

  it('gets no new profile', async () => {
    const { arrival } = await whileHeld(
      (transaction) => transaction('people').where({ id: quin.id }).update({ closedAt: new Date() }),
      async () => {
        const profile = { type: 'profile', author: quin.address, first_name: 'Back', searchable: true } as const
        const arrival = started(receive(pod, publicMessage(quin, { ...profile, public: true, nsfw: false })))
        await untilStuck('transactionid')
        return { arrival }
      },
    )

    expect(await arrival.work).toEqual({ ...allStored, ignored: 1 })
    expect(await pod.db('people').where({ id: quin.id }).pluck('name')).toEqual([''])
  })
})

describe('two batches about the same posts', () => {
  it('raise counters in one order of posts', async () => {
    const [one, other] = [await addPost(pod, ann), await addPost(pod, ann)]

    const batches = await whileHeld(
      (transaction) => transaction('posts').where({ id: other.id }).forNoKeyUpdate().select('id'),
      async () => {
        const first = started(
          receive(pod, publicMessage(quin, commentBy(quin, one)), publicMessage(quin, likeBy(quin, other))),
        )
        await untilStuck('transactionid')
        const second = started(
          receive(pod, publicMessage(quin, commentBy(quin, other)), publicMessage(quin, likeBy(quin, one))),
        )
        await untilStuck('transactionid', 'transactionid')
        return [first, second]
      },
    )

    expect(await Promise.all(batches.map(({ work }) => work))).toEqual([allStored, allStored])
    expect(await Post.query(pod.db).select('commentsCount', 'likesCount')).toEqual([
      { commentsCount: 1, likesCount: 1 },
      { commentsCount: 1, likesCount: 1 },
    ])
  })

  it('add to them at the same time', async () => {
    const post = await addPost(pod, ann)
    const remy = await pod.addRemotePerson('remy@r.example')

    await whileHeld(
      (transaction) => transaction('posts').where({ id: post.id }).forNoKeyUpdate().select('id'),
      async () => {
        const batches = [quin, remy].map((from) => started(receive(pod, publicMessage(from, commentBy(from, post)))))
        // Both have written what they bring, and only wait for their turn to count.
        await untilStuck('transactionid', 'transactionid')
        return batches
      },
    ).then((batches) => Promise.all(batches.map(({ work }) => work)))

    expect(await Post.query(pod.db).findById(post.id)).toMatchObject({ commentsCount: 2 })
  })

  it('store messages that one person sends twice in the order of the posts', async () => {
    const [one, other] = [await addPost(pod, ann), await addPost(pod, ann)]
    const likeOf = (post: Post, digit: string) => likeBy(quin, post, { guid: digit.repeat(32) })
    const insert = async (transaction: Knex.Transaction, post: Post, guid: string) => {
      const { id: authorId } = await transaction('people').where({ address: quin.address }).first('id')
      await transaction('likes').insert({ guid, authorId, postId: post.id })
    }

    const { arrival } = await whileHeld(
      (transaction) => insert(transaction, one, 'c'.repeat(32)),
      async (transaction) => {
        const likes = [likeOf(other, 'a'), likeOf(one, 'b')].map((like) => publicMessage(quin, like))
        const arrival = started(receive(pod, ...likes))
        await untilStuck('transactionid')
        // Were it held by whom this keeps waiting, both would wait until one of them is given up.
        await transaction.raw(`set local lock_timeout = '300ms'`)
        await insert(transaction, other, 'd'.repeat(32))
        return { arrival }
      },
    )

    expect(await arrival.work).toEqual({ ...allStored, ignored: 2 })
    expect(await pod.rows('likes')).toEqual([2])
  })
})
