import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { enqueueLookupsAndFetches } from '../../../src/federation/inbound/commit/enqueue-lookups-and-fetches.js'
import { attachDiscoveredPerson } from '../../../src/federation/inbound/mentioned-people.js'
import type { DataOf, discoverMentionedJob } from '../../../src/jobs/definitions.js'
import { AlreadyDone, type LoadedJob, loadJob } from '../../../src/jobs/outbox/load-job.js'
import { Comment } from '../../../src/persistence/models/comment.js'
import { Mention } from '../../../src/persistence/models/mention.js'
import { Person } from '../../../src/persistence/models/person.js'
import { Post } from '../../../src/persistence/models/post.js'
import { openFetchHandlers } from '../../../workers/handlers/fetch.js'
import { addPost } from '../../support/databases/rows.js'
import { commentBy, postBy } from '../../support/federation/entities.js'
import type { FakePerson } from '../../support/federation/fake-pods.js'
import { allStored, privateMessage, publicMessage, receive } from '../../support/federation/inbound-messages.js'
import type { LocalUser } from '../../support/people/local-users.js'
import type { RemotePerson } from '../../support/people/remote-people.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

let pod: FederationPod
let ann: LocalUser
let quin: RemotePerson
let remy: RemotePerson
/** A person that this pod does not know; their pod serves them. */
let zoe: FakePerson
beforeAll(async () => {
  pod = await openFederationPod()
  ;({ ann } = await pod.localUsers('ann'))
})
afterAll(() => pod.close())
beforeEach(async () => {
  await pod.empty('posts, notifications, outbound_messages, outbox, waiting, tombstones')
  ;({ quin, remy } = await pod.remotePeople('quin', 'remy'))
  zoe = pod.fakePods.person('zoe@three.example')
})

type Search = LoadedJob & { readonly data: DataOf<typeof discoverMentionedJob> }

/** What looks for people who are mentioned, as a worker takes it up. */
async function searches(): Promise<readonly Search[]> {
  const ids: number[] = await pod.db('outbox').where({ name: 'discover-mentioned' }).orderBy('id').pluck('id')
  const taken = await Promise.all(ids.map((outboxId) => loadJob(pod.db, { outboxId })))
  return taken.filter((work) => work !== undefined).map((work) => work as Search)
}

async function run(work: Search): Promise<void> {
  await openFetchHandlers()['discover-mentioned'](pod, work, new AbortController().signal)
  await work.finishIfOpen()
}

async function theSearch(): Promise<Search> {
  const [work, ...more] = await searches()
  if (work === undefined || more.length > 0) throw new Error('There is not one search.')
  return work
}

async function search(): Promise<void> {
  await run(await theSearch())
}

async function mentionedIn({ guid }: { readonly guid: string }): Promise<readonly string[]> {
  const post = await Post.query(pod.db).findOne({ guid }).withGraphFetched('mentionedPeople')
  const comment = await Comment.query(pod.db).findOne({ guid }).withGraphFetched('mentionedPeople')
  return [post, comment]
    .flatMap((text) => text?.mentionedPeople ?? [])
    .map(({ address }) => address)
    .sort()
}

const naming = (...people: readonly { readonly address: string }[]) => ({
  text: people.map(({ address }) => `@{${address}}`).join(' and '),
})

describe('an unknown person whom a remote text mentions', () => {
  it('is mentioned in a post after their discovery, beside the known people', async () => {
    const post = postBy(quin, naming(remy, zoe))
    await receive(pod, publicMessage(quin, post))
    expect(await mentionedIn(post)).toEqual([remy.address])

    await search()

    expect(await mentionedIn(post)).toEqual([remy.address, zoe.address])
    const { createdAt } = await Post.query(pod.db).findOne({ guid: post.guid }).throwIfNotFound()
    expect(await Mention.query(pod.db)).toMatchObject([{ createdAt }, { createdAt }])
    expect(await searches()).toEqual([])
  })

  it('is mentioned in a comment on a local or remote post', async () => {
    const [here, there] = [await addPost(pod, ann), await addPost(pod, remy)]
    const comments = [commentBy(quin, here, naming(zoe)), commentBy(quin, there, naming(zoe))]
    await receive(
      pod,
      ...comments.map((comment) => publicMessage(comment.parent_guid === here.guid ? quin : remy, comment)),
    )

    await search()

    expect(await Promise.all(comments.map(mentionedIn))).toEqual([[zoe.address], [zoe.address]])
  })

  it('gets no delivery, and no local person is notified', async () => {
    const post = await addPost(pod, ann)
    await receive(
      pod,
      publicMessage(quin, postBy(quin, naming(zoe))),
      publicMessage(quin, commentBy(quin, post, naming(zoe))),
    )
    const before = await pod.rows('notifications', 'outbound_messages', 'outbox')

    await search()

    const [notifications, sent, todo = 0] = before
    expect(await pod.rows('notifications', 'outbound_messages', 'outbox')).toEqual([notifications, sent, todo - 1])
  })

  it('is looked up once for a batch', async () => {
    const root = await addPost(pod, ann)
    const texts = [postBy(quin, naming(zoe)), commentBy(quin, root, naming(zoe)), postBy(quin, naming(remy, zoe))]
    await receive(pod, ...texts.map((text) => publicMessage(quin, text)))

    await search()

    expect(await Promise.all(texts.map(mentionedIn))).toEqual([
      [zoe.address],
      [zoe.address],
      [remy.address, zoe.address],
    ])
  })

  it('is mentioned once when the text and the lookup are repeated', async () => {
    const post = postBy(quin, naming(zoe))
    await receive(pod, publicMessage(quin, post), publicMessage(quin, post))
    await receive(pod, publicMessage(quin, post))
    const work = await theSearch()
    await run(work)

    await expect(run(work)).rejects.toThrow(AlreadyDone)
    await run({ ...work, finish: async () => {} })

    expect(await pod.rows('mentions')).toEqual([1])
  })

  it('is mentioned in all texts that arrive before their discovery', async () => {
    const posts = [postBy(quin, naming(zoe)), postBy(quin, naming(zoe))]
    for (const post of posts) await receive(pod, publicMessage(quin, post))

    for (const work of await searches()) await run(work)

    expect(await Promise.all(posts.map(mentionedIn))).toEqual([[zoe.address], [zoe.address]])
  })

  it('is looked up also when they have become known since the text was stored', async () => {
    const entity = postBy(quin, naming(remy))
    const post = await addPost(pod, quin, { guid: entity.guid, text: entity.text })
    const signer = {
      address: quin.address,
      isLocal: false,
      isClosed: false,
      isPodBlocked: false,
      isPersonBlocked: false,
      hasSigned: true,
      isPodOffline: false,
      key: undefined,
    }
    const message = {
      inbound: publicMessage(quin, entity),
      sender: quin.address,
      signer,
      entity,
      signature: 'absent',
      isParentLocal: false,
    } as const

    await pod.db.transaction((transaction) => enqueueLookupsAndFetches(pod, transaction, [{ id: post.id, message }]))
    await search()

    expect(await mentionedIn(post)).toEqual([remy.address])
  })

  it('is not mentioned when their discovery fails', async () => {
    const post = postBy(quin, naming({ address: 'ghost@three.example' }))
    await receive(pod, publicMessage(quin, post))

    await search()

    expect(await mentionedIn(post)).toEqual([])
    expect(await searches()).toEqual([])
  })

  it('is mentioned in a private post like known people, without a notification', async () => {
    const post = postBy(quin, { public: false, ...naming(zoe) })
    expect(await receive(pod, privateMessage(quin, ann, post))).toEqual(allStored)

    await search()

    expect(await mentionedIn(post)).toEqual([zoe.address])
    expect(await pod.rows('post_visibilities', 'notifications', 'outbound_messages')).toEqual([1, 0, 0])
  })
})

describe('a discovered person is not mentioned', () => {
  it('in a text that was deleted in the meantime, but in all others', async () => {
    const root = await addPost(pod, ann)
    const texts = [postBy(quin, naming(zoe)), postBy(quin, naming(zoe))] as const
    const comments = [commentBy(quin, root, naming(zoe)), commentBy(quin, root, naming(zoe))] as const
    await receive(pod, ...[...texts, ...comments].map((text) => publicMessage(quin, text)))
    const retract = (target_type: 'Post' | 'Comment', { guid }: { readonly guid: string }) =>
      publicMessage(quin, { type: 'retraction', author: quin.address, target_guid: guid, target_type })
    expect(await receive(pod, retract('Post', texts[0]), retract('Comment', comments[0]))).toEqual(allStored)

    await search()

    expect(await Promise.all([...texts, ...comments].map(mentionedIn))).toEqual([[], [zoe.address], [], [zoe.address]])
  })

  it('in posts of a closed account; its comments on other posts keep the mention', async () => {
    const [post, comment] = [postBy(quin, naming(zoe)), commentBy(quin, await addPost(pod, ann), naming(zoe))]
    await receive(pod, publicMessage(quin, post), publicMessage(quin, comment))
    expect(await receive(pod, publicMessage(quin, { type: 'account_deletion', author: quin.address }))).toEqual(
      allStored,
    )

    await search()

    expect(await mentionedIn(post)).toEqual([])
    expect(await mentionedIn(comment)).toEqual([zoe.address])
  })

  it('a person whose account was closed in the meantime is not mentioned', async () => {
    const post = postBy(quin, naming(zoe))
    await receive(pod, publicMessage(quin, post))
    const work = await theSearch()
    const { id } = await pod.addRemotePerson(zoe.address)
    await Person.query(pod.db).findById(id).patch({ closedAt: new Date() })

    await attachDiscoveredPerson(pod, work, { id }, work.data.arrivedIn ?? { posts: [], comments: [] })

    expect(await mentionedIn(post)).toEqual([])
    expect(await searches()).toEqual([])
  })
})
