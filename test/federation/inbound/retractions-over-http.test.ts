import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import type { Viewer } from '../../../src/domain/accounts/viewers.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { deleteComment } from '../../../src/domain/posts/deletions.js'
import { publishPost } from '../../../src/domain/posts/publish-post.js'
import { Contact } from '../../../src/persistence/models/contact.js'
import { Person } from '../../../src/persistence/models/person.js'
import { Post } from '../../../src/persistence/models/post.js'
import type { StatusMessageEntity } from '../../../src/protocol/entities/posts.js'
import type { CommentEntity } from '../../../src/protocol/entities/relayables.js'
import type { RetractionEntity, TargetType } from '../../../src/protocol/entities/retraction.js'
import { signedBy } from '../../support/federation/envelopes.js'
import { type FakePerson, type FakePods, startFakePods } from '../../support/federation/fake-pods.js'
import { sentAbout } from '../../support/federation/outbound-messages.js'
import type { TestPerson } from '../../support/people/local-users.js'
import { viewerOf } from '../../support/people/local-users.js'
import { type InboundPod, startInboundPod } from '../../support/pods/inbound-pod.js'
import { openTestStores, queueBackends, type TestStores } from '../../support/queues/queue-backends.js'

/** What comes over HTTP, and what can be read afterwards. */
describe.each(queueBackends)('taking back, with the queue in $store', (backend) => {
  let stores: TestStores
  let fakePods: FakePods
  let pod: InboundPod
  let annsClient: TestPerson
  let ann: Viewer
  let quin: FakePerson
  let remy: FakePerson
  let quinsId: number
  beforeAll(async () => {
    stores = await openTestStores(backend)
    fakePods = await startFakePods()
    pod = await startInboundPod({ fakePods, stores })
    const people = await pod.people('ann')
    annsClient = people.ann
    ann = await viewerOf(pod, annsClient)
    quin = fakePods.person('quin@q.example')
    remy = fakePods.person('remy@r.example')
    quinsId = (await pod.addRemotePerson(quin)).id
    await pod.addRemotePerson(remy)
  })
  afterAll(async () => {
    await pod.close()
    await fakePods.close()
    await stores.close()
  })
  beforeEach(() => pod.db.raw('truncate posts, contacts, outbound_messages, outbox, waiting, tombstones cascade'))

  const postBy = (author: FakePerson, guid = newGuid()): StatusMessageEntity => ({
    type: 'status_message',
    author: author.address,
    guid,
    created_at: new Date('2024-05-06T07:08:09Z'),
    public: true,
    text: 'Hello',
    photos: [],
  })

  const commentBy = (author: FakePerson, parent: { readonly guid: string }): CommentEntity =>
    signedBy(author, {
      type: 'comment',
      author: author.address,
      guid: newGuid(),
      parent_guid: parent.guid,
      text: 'Hello yourself',
      created_at: new Date('2024-05-06T08:08:09Z'),
    })

  const retraction = (type: TargetType, guid: string, author: FakePerson): RetractionEntity => {
    return { type: 'retraction', author: author.address, target_guid: guid, target_type: type }
  }

  /** Each is through before the next one is sent. */
  async function arrive(...sent: readonly (readonly [Parameters<InboundPod['postPublic']>[0], FakePerson])[]) {
    for (const [entity, signer] of sent) {
      expect(await pod.postPublic(entity, signer)).toBe(202)
      await pod.waitUntilIdle()
    }
  }

  const guidsOf = (table: string): Promise<string[]> => pod.db(table).orderBy('guid').pluck('guid')

  it('ends a post with its comments, and leaves its reshares without a root', async () => {
    const post = postBy(quin)
    const comment = commentBy(remy, post)
    const reshare = { type: 'reshare', author: remy.address, guid: newGuid(), created_at: new Date() } as const
    const root = { root_author: quin.address, root_guid: post.guid }
    await arrive([post, quin], [comment, quin], [{ ...reshare, ...root }, remy])
    expect(await guidsOf('comments')).toEqual([comment.guid])

    await arrive([retraction('Post', post.guid, quin), remy])
    expect(await guidsOf('posts')).toHaveLength(2)

    await arrive([retraction('Post', post.guid, quin), quin])
    expect(await Post.query(pod.db).select('guid', 'rootId')).toEqual([{ guid: reshare.guid, rootId: null }])
    expect(await guidsOf('comments')).toEqual([])
  })

  it('relays the retraction of a comment to the readers of the post, signed by the post author', async () => {
    const post = await publishPost(pod, ann, { text: 'Good morning', public: true })
    const follows = { type: 'participation', author: remy.address, guid: newGuid(), parent_guid: post.guid } as const
    const comment = commentBy(quin, post)
    await arrive([{ ...follows, parent_type: 'Post' }, remy], [comment, quin])
    expect(await Post.query(pod.db).findById(post.id)).toMatchObject({ commentsCount: 1 })

    await arrive([retraction('Comment', comment.guid, quin), quin])

    expect(await Post.query(pod.db).findById(post.id)).toMatchObject({ commentsCount: 0 })
    const [taken] = (await sentAbout(pod, comment.guid)).filter(({ verb }) => verb === 'retract')
    expect(taken).toMatchObject({ senderId: ann.personId, to: ['r.example'] })
  })

  it('sends the deletion of a comment by the post author to the comment author and the readers of the post', async () => {
    const post = await publishPost(pod, ann, { text: 'Good morning', public: true })
    const follows = { type: 'participation', author: remy.address, guid: newGuid(), parent_guid: post.guid } as const
    const comment = commentBy(quin, post)
    await arrive([{ ...follows, parent_type: 'Post' }, remy], [comment, quin])

    await deleteComment(pod, ann, { postGuid: post.guid, commentGuid: comment.guid })

    const [taken] = (await sentAbout(pod, comment.guid)).filter(({ verb }) => verb === 'retract')
    expect(taken).toMatchObject({ senderId: ann.personId, to: ['q.example', 'r.example'] })
    expect(taken?.entity).toContain(`<author>${quin.address}</author>`)

    await arrive([comment, quin])
    expect(await guidsOf('comments')).toEqual([])
  })

  it('lets the author of a post retract the comments of others on it', async () => {
    const post = postBy(remy)
    const comment = commentBy(quin, post)
    await arrive([post, remy], [comment, remy])
    expect(await guidsOf('comments')).toEqual([comment.guid])

    await arrive([retraction('Comment', comment.guid, quin), remy])

    expect(await guidsOf('comments')).toEqual([])
  })

  it('keeps away an entity that was retracted before its arrival, but not one of another author with that guid', async () => {
    const [kept, away] = [newGuid(), newGuid()]

    await arrive([retraction('Post', away, quin), quin], [retraction('Post', kept, quin), quin])
    expect(await pod.db('waiting').orderBy('id').select('waitsFor')).toEqual([
      { waitsFor: `post:${away}` },
      { waitsFor: `post:${kept}` },
    ])
    await arrive([postBy(quin, away), quin], [postBy(remy, kept), remy])

    expect(await guidsOf('posts')).toEqual([kept])
  })

  it('has the same result in any order of arrival', async () => {
    const posts = Array.from({ length: 10 }, () => postBy(quin))
    const all = posts.flatMap((post, index) => [
      () => pod.postPublic(post, quin),
      ...(index % 2 === 0 ? [() => pod.postPublic(retraction('Post', post.guid, quin), quin)] : []),
    ])

    const answers = await Promise.all(all.toReversed().map((send) => send()))
    await pod.waitUntilIdle()

    expect(new Set(answers)).toEqual(new Set([202]))
    const left = posts.filter((_post, index) => index % 2 === 1).map(({ guid }) => guid)
    expect(await guidsOf('posts')).toEqual(left.sort())
  })

  it('ends what a person shares', async () => {
    await Contact.query(pod.db).insert({ userId: ann.userId, personId: quinsId, sharing: true })
    const { guid } = await Person.query(pod.db).findById(quinsId).throwIfNotFound()

    expect(await pod.postPrivate(retraction('Person', guid, quin), quin, annsClient)).toBe(202)
    await pod.waitUntilIdle()

    expect(await Contact.query(pod.db)).toEqual([])
  })
})
