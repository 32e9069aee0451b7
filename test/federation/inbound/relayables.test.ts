import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { loadPrivateKey } from '../../../src/domain/accounts/private-keys.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { receiveBatch } from '../../../src/federation/inbound/receive-batch.js'
import { Comment } from '../../../src/persistence/models/comment.js'
import { Like } from '../../../src/persistence/models/like.js'
import { Person } from '../../../src/persistence/models/person.js'
import { Post } from '../../../src/persistence/models/post.js'
import type { CommentEntity, Elements } from '../../../src/protocol/entities/relayables.js'
import { addPost } from '../../support/databases/rows.js'
import { commentBy, likeBy, participationBy, pollWith, postBy, voteBy } from '../../support/federation/entities.js'
import { signedBy } from '../../support/federation/envelopes.js'
import { allStored, publicMessage, receive } from '../../support/federation/inbound-messages.js'
import { dispatchNow, sentAbout } from '../../support/federation/outbound-messages.js'
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
})
afterAll(() => pod.close())
beforeEach(async () => {
  await pod.empty('posts, notifications, blocks, tags, outbound_messages, outbox, waiting, tombstones')
  ;({ quin, remy } = await pod.remotePeople('quin', 'remy'))
})

const postOfAnn = (fields: Partial<Post> = {}) => addPost(pod, ann, fields)

/** What is to be passed on. */
async function relayed(): Promise<readonly unknown[]> {
  const jobs = await pod.db('outbox').where({ name: 'dispatch-relays' }).orderBy('id').pluck('data')
  return jobs.flatMap(({ relays }) => relays)
}

describe('a comment', () => {
  it('on a local post is stored with its signature, counted and relayed', async () => {
    const post = await postOfAnn()
    const comment = commentBy(quin, post, { text: ' Nice, @{ann@pod.example} #really ' })

    expect(await receive(pod, publicMessage(quin, comment))).toEqual(allStored)

    const stored = await Comment.query(pod.db).findOne({ guid: comment.guid }).throwIfNotFound()
    expect(stored).toMatchObject({
      postId: post.id,
      authorId: quin.id,
      text: comment.text,
      createdAt: comment.created_at,
    })
    expect(stored.authorSignature).toBe(comment.author_signature)
    expect(stored.signedElements).toEqual([
      ['author', quin.address],
      ['guid', comment.guid],
      ['parent_guid', post.guid],
      ['text', comment.text],
      ['created_at', '2024-05-08T07:08:09Z'],
    ])
    expect(await Post.query(pod.db).findById(post.id)).toMatchObject({
      commentsCount: 1,
    })
    expect(await pod.db('mentions').pluck('person_id')).toEqual([ann.id])
    expect(await pod.db('taggings').select('commentId', 'createdAt')).toEqual([
      { commentId: stored.id, createdAt: post.createdAt },
    ])
    expect(await relayed()).toEqual([{ record: 'comment', guid: comment.guid }])
  })

  it('moves the post up by the time of its arrival, not by its own time', async () => {
    const post = await postOfAnn({ interactedAt: new Date('2020-01-01T00:00:00Z') })
    const before = Date.now()

    await receive(pod, publicMessage(quin, commentBy(quin, post)))

    const moved = await Post.query(pod.db).findById(post.id).throwIfNotFound()
    expect(moved.interactedAt.getTime()).toBeGreaterThanOrEqual(before)
  })

  it('on a remote post is stored without its signature, and is not relayed', async () => {
    const post = postBy(remy)
    const [direct, relayedOne] = [commentBy(quin, post), commentBy(quin, post)]

    expect(
      await receive(pod, publicMessage(remy, post), publicMessage(quin, direct), publicMessage(remy, relayedOne)),
    ).toEqual({
      ...allStored,
      rejected: ['InvalidSender'],
    })

    expect(await pod.db('comments').select('guid', 'authorSignature', 'signedElements')).toEqual([
      { guid: relayedOne.guid, authorSignature: null, signedElements: null },
    ])
    expect(await relayed()).toEqual([])
  })

  it('of the author of the post needs no signature of its own', async () => {
    const post = postBy(remy)
    const { author_signature: _, ...unsigned } = commentBy(remy, post)

    expect(await receive(pod, publicMessage(remy, post), publicMessage(remy, unsigned))).toEqual(allStored)
    expect(await pod.db('comments').pluck('guid')).toEqual([unsigned.guid])
  })

  it.each([
    ['no', undefined],
    ['an empty', ''],
    ['a wrong', Buffer.from('wrong').toString('base64')],
  ])('with %s signature is refused', async (_what, signature) => {
    const { author_signature: _, ...comment } = commentBy(quin, await postOfAnn())
    const entity = signature === undefined ? comment : { ...comment, author_signature: signature }

    expect(await receive(pod, publicMessage(quin, entity))).toEqual({
      ...allStored,
      rejected: ['SignatureVerificationFailed'],
    })
    expect(await pod.rows('comments', 'outbox')).toEqual([0, 0])
  })

  it('is relayed with the signed names, order and texts', async () => {
    const post = await postOfAnn()
    await pod.db('participations').insert({ guid: newGuid(), postId: post.id, authorId: remy.id })
    const guid = newGuid()
    const elements: Elements = [
      ['guid', guid],
      ['mood', 'a;b < & é 𝄞'],
      ['text', '  a\r\nb;  '],
      ['created_at', '2024-05-08T07:08:09Z'],
      ['nothing', ''],
      ['parent_guid', post.guid],
      ['author', quin.address],
    ]
    const fields = { author: quin.address, guid, parent_guid: post.guid, text: '  a\r\nb;  ', elements }
    const comment = signedBy<CommentEntity>(quin, {
      type: 'comment',
      created_at: new Date('2024-05-08T07:08:09Z'),
      ...fields,
    })

    expect(await receive(pod, publicMessage(quin, comment))).toEqual(allStored)
    await dispatchNow(pod, { record: 'comment', guid })

    const [sent, ...more] = await sentAbout(pod, guid)
    expect(more).toEqual([])
    expect(sent).toMatchObject({ verb: 'create', public: true, senderId: ann.id, to: ['r.example'] })
    const names = [...(sent?.entity ?? '').matchAll(/<([a-z_]+)(?:>|\/>)/g)].map(([, name]) => name)
    expect(names).toEqual(['comment', ...elements.map(([name]) => name), 'author_signature'])
    expect(sent?.entity).toContain(`<author_signature>${comment.author_signature}</author_signature>`)
  })

  it('that arrives again has no effect', async () => {
    const post = await postOfAnn()
    const comment = commentBy(quin, post)
    await receive(pod, publicMessage(quin, comment), publicMessage(quin, comment))
    await pod.db('outbox').delete()
    const before = await pod.rows('comments', 'notifications', 'notification_actors')

    expect(await receive(pod, publicMessage(quin, comment))).toEqual(allStored)

    expect(await Post.query(pod.db).findById(post.id)).toMatchObject({ commentsCount: 1 })
    expect(await pod.rows('comments', 'notifications', 'notification_actors')).toEqual(before)
    expect(await pod.rows('outbox')).toEqual([0])
  })

  it('belongs to one author when two use its guid', async () => {
    const post = await postOfAnn()
    const [first, second, third] = [commentBy(quin, post), commentBy(remy, post), commentBy(remy, post)]
    const guid = first.guid
    const again = (comment: typeof first) => commentBy(remy, post, { ...comment, guid, author: remy.address })

    const together = await receive(pod, publicMessage(quin, first), publicMessage(remy, again(second)))
    const later = await receive(pod, publicMessage(remy, again(third)))

    expect([together.rejected, later.rejected]).toEqual([['InvalidAuthor'], ['InvalidAuthor']])
    expect(await pod.db('comments').pluck('author_id')).toEqual([quin.id])
  })

  it('with only white space is rejected', async () => {
    const comment = commentBy(quin, await postOfAnn(), { text: ' \n ' })

    expect(await receive(pod, publicMessage(quin, comment))).toEqual({ ...allStored, rejected: ['ValidationError'] })
  })

  it('that names a local author is ignored, from any sender', async () => {
    const [post, theirs] = [await postOfAnn(), postBy(remy)]
    const { id } = ann
    const person = { ...ann, privateKey: await loadPrivateKey(pod, id) }

    const ended = await receive(
      pod,
      publicMessage(remy, theirs),
      publicMessage(person, commentBy(person, post)),
      publicMessage(remy, commentBy(person, theirs)),
    )

    expect(ended).toEqual({ ...allStored, ignored: 2 })
    expect(await pod.rows('comments')).toEqual([0])
  })

  it('by a person whom the author of the post blocks is answered with its retraction', async () => {
    const post = await postOfAnn()
    await pod.db('blocks').insert({ userId: ann.userId, personId: quin.id })
    const [comment, other] = [commentBy(quin, post), commentBy(remy, post)]

    const ended = await receive(pod, publicMessage(quin, comment), publicMessage(remy, other))

    expect(ended).toEqual({ ...allStored, rejected: ['AuthorIgnored'] })
    expect(await pod.db('comments').pluck('guid')).toEqual([other.guid])
    expect(await Post.query(pod.db).findById(post.id)).toMatchObject({ commentsCount: 1 })
    const [sent, ...more] = await sentAbout(pod, comment.guid)
    expect(more).toEqual([])
    expect(sent).toMatchObject({ verb: 'retract', senderId: ann.id, to: ['q.example'] })
    expect(sent?.entity).toContain('<target_type>Comment</target_type>')
    expect(sent?.entity).toContain(`<author>${quin.address}</author>`)
  })

  it.each([
    ['its author', () => quin.id, 0],
    ['the author of the post', () => ann.id, 0],
    ['another person', () => remy.id, 1],
  ])('rejects a comment that %s retracted before its arrival', async (_who, by, left) => {
    const comment = commentBy(quin, await postOfAnn())
    await pod.db('tombstones').insert({ targetType: 'Comment', guid: comment.guid, deletedById: by() })

    expect((await receive(pod, publicMessage(quin, comment))).ignored).toBe(1 - left)
    expect(await pod.rows('comments')).toEqual([left])
  })
})

describe('an unknown post', () => {
  it('is fetched from the pod of the comment author, then from that of the sender', async () => {
    const post = postBy(remy)

    const { waiting } = await receiveBatch(pod, [
      publicMessage(remy, commentBy(quin, post)),
      publicMessage(remy, commentBy(remy, post)),
    ])

    expect(waiting).toMatchObject([
      {
        waitsFor: `post:${post.guid}`,
        fault: 'NotFetchable',
        fetchFrom: quin.address,
        fallbackFetchFrom: remy.address,
      },
      { waitsFor: `post:${post.guid}`, fault: 'NotFetchable', fetchFrom: remy.address },
    ])
    expect(waiting[1]?.fallbackFetchFrom).toBeUndefined()
    expect(await pod.db('waiting').pluck('waits_for')).toEqual([`post:${post.guid}`, `post:${post.guid}`])
  })

  it.each([
    ['a comment with a wrong signature', () => commentBy(quin, postBy(remy), { author_signature: 'wrong' })],
    ['a comment by a local person', () => ({ ...commentBy(remy, postBy(remy)), author: ann.address })],
    ['a participation', () => participationBy(remy, postBy(remy))],
  ])('is not fetched because of %s', async (_what, make) => {
    const entity = make()
    const broken = entity.type === 'comment' ? { ...entity, author_signature: 'bm90IHNpZ25lZA==' } : entity

    const { waiting } = await receive(pod, publicMessage(remy, broken))

    expect(waiting).toEqual([])
    expect(await pod.rows('waiting')).toEqual([0])
  })

  it('resumes its waiting interactions on all levels when it arrives', async () => {
    const post = postBy(remy, { poll: pollWith('Yes', 'No') })
    const comment = commentBy(quin, post)
    const [yes] = post.poll?.poll_answers ?? []
    const messages = [
      publicMessage(remy, likeBy(quin, comment, { parent_type: 'Comment' })),
      publicMessage(remy, voteBy(quin, { guid: post.poll?.guid ?? '' }, yes ?? { guid: '' })),
      publicMessage(remy, comment),
      publicMessage(remy, post),
    ]

    expect(await receive(pod, ...messages)).toEqual(allStored)

    expect(await Comment.query(pod.db)).toMatchObject([{ guid: comment.guid, likesCount: 1 }])
    expect(await pod.db('pollAnswers').orderBy('position').pluck('vote_count')).toEqual([1, 0])
  })

  it('a rejected post resumes no message', async () => {
    const post = postBy(remy, { public: false })
    const comment = commentBy(quin, post)

    expect(await receive(pod, publicMessage(remy, post), publicMessage(remy, comment))).toEqual({
      ...allStored,
      waiting: [`post:${post.guid}`],
      rejected: ['NotPublic'],
    })
  })
})

describe('a like', () => {
  it('counts once for each person and parent, and only if it is positive', async () => {
    const post = await postOfAnn()
    const likes = [likeBy(quin, post), likeBy(quin, post), likeBy(remy, post, { positive: false })]

    const ended = await receive(
      pod,
      publicMessage(quin, likes[0] ?? likeBy(quin, post)),
      publicMessage(remy, likes[2] ?? likeBy(remy, post)),
    )
    const second = await receive(pod, publicMessage(quin, likes[1] ?? likeBy(quin, post)))

    expect([ended, second]).toEqual([allStored, { ...allStored, ignored: 1 }])
    expect(await Post.query(pod.db).findById(post.id)).toMatchObject({ likesCount: 1 })
    expect(await Like.query(pod.db).orderBy('authorId')).toMatchObject([
      { authorId: quin.id, positive: true },
      { authorId: remy.id, positive: false },
    ])
    expect((await relayed()).length).toBe(2)
  })

  it('of a comment on a local post is accepted only from its author', async () => {
    const post = await postOfAnn()
    const comment = commentBy(quin, post)
    await receive(pod, publicMessage(quin, comment))
    const like = likeBy(remy, comment, { parent_type: 'Comment' })

    expect((await receive(pod, publicMessage(quin, like))).rejected).toEqual(['InvalidSender'])
    expect(await receive(pod, publicMessage(remy, like))).toEqual(allStored)

    expect(await Comment.query(pod.db)).toMatchObject([{ likesCount: 1 }])
    expect(await Post.query(pod.db).findById(post.id)).toMatchObject({ likesCount: 0 })
    expect(await Like.query(pod.db)).toMatchObject([{ postId: null, authorSignature: like.author_signature }])
  })

  it('of an unknown comment waits for it', async () => {
    const guid = newGuid()

    expect(
      (await receive(pod, publicMessage(remy, likeBy(quin, { guid }, { parent_type: 'Comment' })))).waiting,
    ).toEqual([`comment:${guid}`])
  })
})

describe('a vote', () => {
  it('counts for its answer, once for each person and poll', async () => {
    const poll = pollWith('Yes', 'No')
    const post = postBy(remy, { poll })
    const [yes, no] = poll.poll_answers
    if (yes === undefined || no === undefined) throw new Error('The poll has no answers.')
    await receive(pod, publicMessage(remy, post))

    expect(await receive(pod, publicMessage(remy, voteBy(quin, poll, no)))).toEqual(allStored)
    expect(await receive(pod, publicMessage(remy, voteBy(quin, poll, yes)))).toEqual({ ...allStored, ignored: 1 })

    expect(await pod.db('pollAnswers').orderBy('position').pluck('vote_count')).toEqual([0, 1])
  })

  it('for an answer of another poll is not stored', async () => {
    const [poll, other] = [pollWith('Yes', 'No'), pollWith('This', 'That')]
    await receive(pod, publicMessage(remy, postBy(remy, { poll })), publicMessage(remy, postBy(remy, { poll: other })))
    const [foreign] = other.poll_answers

    const { rejected } = await receive(pod, publicMessage(remy, voteBy(quin, poll, foreign ?? { guid: '' })))

    expect(rejected).toEqual(['ValidationError'])
    expect(await pod.rows('poll_participations')).toEqual([0])
  })
})

describe('a participation', () => {
  it('is stored once for each person and local post', async () => {
    const post = await postOfAnn()
    const [one, two] = [participationBy(remy, post), participationBy(remy, post)]

    expect(await receive(pod, publicMessage(remy, one), publicMessage(remy, one))).toEqual(allStored)
    expect(await receive(pod, publicMessage(remy, two))).toEqual(allStored)

    expect(await pod.db('participations').select('guid', 'authorId', 'count')).toEqual([
      { guid: one.guid, authorId: remy.id, count: 1 },
    ])
  })

  it('in a remote or unknown post is rejected', async () => {
    const theirs = postBy(quin)
    await receive(pod, publicMessage(quin, theirs))

    const ended = await receive(
      pod,
      publicMessage(remy, participationBy(remy, theirs)),
      publicMessage(remy, participationBy(remy, postBy(remy))),
    )

    expect(ended).toEqual({ ...allStored, rejected: ['ParentNotLocal', 'ParentNotLocal'] })
  })
})

describe('any number of relayables', () => {
  it('is stored once when it arrives repeatedly and in parallel', async () => {
    const [one, two] = [await postOfAnn(), await postOfAnn()]
    const comments = Array.from({ length: 12 }, (_, index) =>
      commentBy(index % 2 === 0 ? quin : remy, index % 3 === 0 ? one : two),
    )
    const likes = [one, two].flatMap((post) => [likeBy(quin, post), likeBy(remy, post)])
    const signerOf = (author: string) => (author === quin.address ? quin : remy)
    const messages = [...comments, ...likes].map((entity) => publicMessage(signerOf(entity.author), entity))
    const turned = (by: number) => [...messages.slice(by), ...messages.slice(0, by)]

    const ended = await Promise.all([0, 4, 8, 13].map((by) => receive(pod, ...turned(by), ...turned(by))))

    expect(ended.flatMap(({ waiting, rejected }) => [...waiting, ...rejected])).toEqual([])
    expect(await pod.rows('comments', 'likes')).toEqual([12, 4])
    expect(await Post.query(pod.db).orderBy('id')).toMatchObject([
      { commentsCount: 4, likesCount: 2 },
      { commentsCount: 8, likesCount: 2 },
    ])
    expect((await relayed()).length).toBe(16)
  })
})

it('a relayable by a person with a closed account is not stored, from any sender', async () => {
  const [localPost, remotePost] = [await postOfAnn(), postBy(remy)]
  await Person.query(pod.db).findById(quin.id).patch({ closedAt: new Date() })

  expect(
    await receive(
      pod,
      publicMessage(remy, remotePost),
      publicMessage(quin, commentBy(quin, localPost)),
      publicMessage(remy, commentBy(quin, remotePost)),
    ),
  ).toEqual({
    ...allStored,
    ignored: 2,
  })
})
