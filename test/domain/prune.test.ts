import { afterAll, beforeAll, expect, it } from 'vitest'
import { COMMAND_ACTOR } from '../../src/domain/moderation/actor.js'
import { hideContent } from '../../src/domain/moderation/hide-content.js'
import { newGuid } from '../../src/domain/new-guid.js'
import { continuePrune, type PruneOptions, previewPrune, prune } from '../../src/domain/operations/prune.js'
import type { Person } from '../../src/persistence/models/person.js'
import type { Post } from '../../src/persistence/models/post.js'
import { readSharedMetrics } from '../../src/persistence/operations/shared-metrics.js'
import { addPost, addUserRow, countRows } from '../support/databases/rows.js'
import { addRemotePerson } from '../support/people/remote-people.js'
import { buildPod, type TestPod } from '../support/pods/build-pod.js'

const OLD = new Date(Date.now() - 100 * 86_400_000)
const signal = new AbortController().signal

let test: TestPod
let author: Person
let local: { readonly userId: number; readonly personId: number }

beforeAll(async () => {
  test = await buildPod()
  author = await addRemotePerson(test.pod, 'quin@q.example')
  const user = await addUserRow(test.pod, 'ann')
  local = { userId: user.id, personId: user.personId }
})
afterAll(() => test.close())

/** A post of another pod that was written, stored and last commented on before the limit. */
async function addOldPost(fields: Partial<Post> = {}, by: Person = author): Promise<Post> {
  const post = await addPost(test.pod, by, { createdAt: OLD, ...fields })
  await makeOld('posts', post.id)
  return post
}

async function makeOld(table: string, id: number): Promise<void> {
  const columns = table === 'posts' ? { createdAt: OLD, storedAt: OLD, interactedAt: OLD } : { createdAt: OLD }
  await test.pod.db(table).where({ id }).update(columns)
}

async function insert(table: string, row: object): Promise<number> {
  const [{ id } = { id: 0 }] = await test.pod.db(table).insert(row).returning('id')
  return id
}

const options = (more: Partial<PruneOptions> = {}): PruneOptions => ({
  category: 'posts',
  days: 90,
  withComments: false,
  includeUnfetchable: false,
  notificationDays: 365,
  signal,
  ...more,
})

/** Ties of local people, and other reasons for which an old post stays. */
const reasons: Readonly<Record<string, () => Promise<Post>>> = {
  async liked() {
    const post = await addOldPost()
    await insert('likes', { guid: newGuid(), authorId: local.personId, postId: post.id })
    return post
  },
  async 'liked: a comment under it'() {
    const post = await addOldPost()
    const commentId = await insert('comments', { guid: newGuid(), authorId: author.id, postId: post.id, text: 'x' })
    await insert('likes', { guid: newGuid(), authorId: local.personId, commentId })
    return post
  },
  async voted() {
    const post = await addOldPost()
    const pollId = await insert('polls', { guid: newGuid(), postId: post.id, question: 'Which?' })
    const pollAnswerId = await insert('poll_answers', { guid: newGuid(), pollId, position: 0, answer: 'This' })
    await insert('poll_participations', { guid: newGuid(), pollId, pollAnswerId, authorId: local.personId })
    return post
  },
  async commented() {
    const post = await addOldPost()
    await insert('comments', { guid: newGuid(), authorId: local.personId, postId: post.id, text: 'x' })
    return post
  },
  async participated() {
    const post = await addOldPost()
    await insert('participations', { guid: newGuid(), authorId: local.personId, postId: post.id })
    return post
  },
  async reshared() {
    const post = await addOldPost()
    await addPost(test.pod, { id: local.personId }, { type: 'Reshare', rootId: post.id, text: '' })
    return post
  },
  async 'reshared: by a remote person, lately'() {
    const post = await addOldPost()
    await addPost(test.pod, author, { type: 'Reshare', rootId: post.id, text: '' })
    return post
  },
  async 'mentions_local_person: in a comment'() {
    const post = await addOldPost()
    const commentId = await insert('comments', { guid: newGuid(), authorId: author.id, postId: post.id, text: 'x' })
    await insert('mentions', { personId: local.personId, commentId })
    return post
  },
  async followed_author() {
    const followed = await addRemotePerson(test.pod, 'followed@q.example')
    await insert('contacts', { userId: local.userId, personId: followed.id, receiving: true })
    return addOldPost({}, followed)
  },
  async followed_tag() {
    const post = await addOldPost()
    const tagId = await insert('tags', { name: 'followed' })
    await test.pod.db('tagFollowings').insert({ userId: local.userId, tagId })
    await insert('taggings', { tagId, postId: post.id, createdAt: OLD })
    return post
  },
  async reported() {
    const post = await addOldPost()
    await insert('moderation_cases', { targetType: 'post', targetGuid: post.guid, public: true, kind: 'filter' })
    return post
  },
  async notified() {
    const post = await addOldPost()
    await insert('notifications', { guid: newGuid(), userId: local.userId, type: 'also_commented', postId: post.id })
    return post
  },
  async 'notified: the notification was read lately'() {
    const post = await addOldPost()
    const row = { guid: newGuid(), userId: local.userId, type: 'also_commented', postId: post.id }
    await insert('notifications', { ...row, read: true, updatedAt: new Date(Date.now() - 80 * 86_400_000) })
    return post
  },
  async hidden_or_muted() {
    const post = await addOldPost()
    await test.pod.db('hiddenPosts').insert({ userId: local.userId, postId: post.id })
    return post
  },
  async reshare_of_local_post() {
    const root = await addPost(test.pod, { id: local.personId }, { resharesCount: 1 })
    return addOldPost({ type: 'Reshare', rootId: root.id, text: '' })
  },
  async 'hidden_by_moderator: the post'() {
    const post = await addOldPost()
    await hideContent(test.pod, COMMAND_ACTOR, { type: 'post', guid: post.guid }, { reason: 'Spam' })
    return post
  },
  async 'hidden_by_moderator: a comment under it'() {
    const post = await addOldPost()
    const guid = newGuid()
    await insert('comments', { guid, authorId: author.id, postId: post.id, text: 'x' })
    await hideContent(test.pod, COMMAND_ACTOR, { type: 'comment', guid }, { reason: 'Spam' })
    return post
  },
  async files_served() {
    const post = await addOldPost()
    const photo = { guid: newGuid(), authorId: author.id, postId: post.id, name: 'x.png', public: true }
    const photoId = await insert('photos', { ...photo, remotePath: 'https://q.example/' })
    await test.pod.db('movedPhotoFiles').insert({ photoId, name: 'x.png', movedAt: OLD })
    return post
  },
  async only_copy_of_pictures() {
    const post = await addOldPost()
    await insert('photos', { guid: newGuid(), authorId: author.id, postId: post.id, name: 'y.png', public: true })
    return post
  },
  async private() {
    return addOldPost({ public: false })
  },
  async pod_gone() {
    const gone = await addRemotePerson(test.pod, 'gone@gone.example')
    await test.pod
      .db('pods')
      .where({ host: 'gone.example' })
      .update({ offlineSince: test.pod.db.raw(`now() - interval '20 days'`) })
    return addOldPost({}, gone)
  },
  async author_closed() {
    const closed = await addRemotePerson(test.pod, 'closed@q.example')
    await test.pod.db('people').where({ id: closed.id }).update({ closedAt: OLD })
    return addOldPost({}, closed)
  },
  async comments() {
    const post = await addOldPost()
    await insert('comments', { guid: newGuid(), authorId: author.id, postId: post.id, text: 'x' })
    return post
  },
  async 'interaction_within_limit: a like'() {
    const post = await addOldPost()
    await insert('likes', { guid: newGuid(), authorId: author.id, postId: post.id })
    return post
  },
  async 'interaction_within_limit: a vote'() {
    const post = await addOldPost()
    const pollId = await insert('polls', { guid: newGuid(), postId: post.id, question: 'Which?' })
    const pollAnswerId = await insert('poll_answers', { guid: newGuid(), pollId, position: 0, answer: 'This' })
    await insert('poll_participations', { guid: newGuid(), pollId, pollAnswerId, authorId: author.id })
    return post
  },
  async 'interaction_within_limit: a participation'() {
    const post = await addOldPost()
    await insert('participations', { guid: newGuid(), authorId: author.id, postId: post.id })
    return post
  },
}

async function isStored({ id }: Post): Promise<boolean> {
  return (await test.pod.db('posts').where({ id })).length === 1
}

it('an old remote post is removed; one that a local person has touched, or that cannot be fetched again, stays', async () => {
  const untouched = await addOldPost()
  await insert('likes', { guid: newGuid(), authorId: author.id, postId: untouched.id, createdAt: OLD })
  await insert('participations', { guid: newGuid(), authorId: author.id, postId: untouched.id, createdAt: OLD })
  const fetchedYesterday = await addPost(test.pod, author, { createdAt: OLD })
  await test.pod.db('posts').where({ id: fetchedYesterday.id }).update({ interactedAt: OLD })
  const own = await addPost(test.pod, { id: local.personId })
  await makeOld('posts', own.id)
  const kept = new Map<string, Post>()
  for (const [reason, make] of Object.entries(reasons)) kept.set(reason, await make())
  const countPosts = async () => {
    const root = await test.pod.db('posts').where({ resharesCount: 1 })
    return { root: root.length, rows: await countRows(test.pod, ['outbox', 'tombstones', 'notifications', 'people']) }
  }
  const before = await countPosts()

  const preview = await previewPrune(test.pod, options())
  expect(preview).toMatchObject({ rows: 1, oldest: OLD })
  const expected: Record<string, number> = {}
  for (const key of Object.keys(reasons)) {
    const [reason = ''] = key.split(':')
    expected[reason] = (expected[reason] ?? 0) + 1
  }
  expect(preview.kept).toEqual(expected)
  const readOnly = await test.pod.db.transaction(async (db) => {
    await db.raw('set transaction read only')
    return previewPrune({ db }, options())
  })
  expect(readOnly).toEqual(preview)
  expect(await isStored(untouched)).toBe(true)

  expect(await prune(test.pod, options())).toEqual(preview)

  expect(await isStored(untouched)).toBe(false)
  for (const [reason, post] of [...kept, ['fetched yesterday', fetchedYesterday], ['own', own]] as const) {
    expect({ reason, stored: await isStored(post) }).toEqual({ reason, stored: true })
  }
  expect(await countPosts()).toEqual(before)

  const { rows } = await prune(test.pod, options({ withComments: true, includeUnfetchable: true }))
  expect(rows).toBe(4)
  for (const [reason, post] of kept) {
    const goes = ['private', 'pod_gone', 'author_closed', 'comments'].includes(reason)
    expect({ reason, stored: await isStored(post) }).toEqual({ reason, stored: !goes })
  }
})

it('a root is removed in the run that removes its last reshare, and stays with a reshare that stays', async () => {
  const [forgotten, liked] = [await addOldPost(), await addOldPost()]
  const reshareOf = ({ id }: Post) => addOldPost({ type: 'Reshare', rootId: id, text: '' })
  const reshares = [await reshareOf(forgotten), await reshareOf(liked)]
  await insert('likes', { guid: newGuid(), authorId: local.personId, postId: reshares[1]?.id })

  const preview = await previewPrune(test.pod, options())
  expect(preview.rows).toBe(2)
  expect(await prune(test.pod, options())).toEqual(preview)

  expect(await Promise.all([forgotten, liked, ...reshares].map(isStored))).toEqual([false, true, false, true])
})

it('a recent like keeps a reshare and its root; a recent like of a comment keeps a post whose comments do not', async () => {
  const [root, commented, forgotten] = [await addOldPost(), await addOldPost(), await addOldPost()]
  const reshare = await addOldPost({ type: 'Reshare', rootId: root.id, text: '' })
  const like = { guid: newGuid(), authorId: author.id, createdAt: new Date(Date.now() - 80 * 86_400_000) }
  await insert('likes', { ...like, postId: reshare.id })
  const commentId = await insert('comments', { guid: newGuid(), authorId: author.id, postId: commented.id, text: 'x' })
  await insert('likes', { ...like, guid: newGuid(), commentId })
  await insert('likes', { ...like, guid: newGuid(), postId: forgotten.id, createdAt: OLD })
  const areStored = () => Promise.all([root, reshare, commented, forgotten].map(isStored))

  const preview = await previewPrune(test.pod, options({ withComments: true }))
  expect(preview).toMatchObject({ rows: 1 })
  expect(await prune(test.pod, options({ withComments: true }))).toEqual(preview)
  expect(await areStored()).toEqual([true, true, true, false])

  const earlier = options({ withComments: true, days: 70 })
  expect(await prune(test.pod, earlier)).toMatchObject({ rows: 3 })
  expect(await areStored()).toEqual([false, false, false, false])
})

it('a root stays while a reshare is left for the next run, because another transaction has locked it', async () => {
  const root = await addOldPost()
  const reshare = await addOldPost({ type: 'Reshare', rootId: root.id, text: '' })
  await test.pod.db.transaction(async (transaction) => {
    await transaction.raw('select from posts where id = ? for key share', [reshare.id])
    expect(await prune(test.pod, options())).toMatchObject({ rows: 0 })
  })
  expect(await prune(test.pod, options())).toMatchObject({ rows: 2 })
})

it('a reshare with very many comments is removed, and its root keeps its counter', async () => {
  const followed = await addRemotePerson(test.pod, 'followed-too@q.example')
  await insert('contacts', { userId: local.userId, personId: followed.id, receiving: true })
  const root = await addOldPost({ resharesCount: 1 }, followed)
  const reshare = await addOldPost({ type: 'Reshare', rootId: root.id, text: '' })
  await test.pod.db.raw(
    `insert into comments (guid, author_id, post_id, text)
     select md5(number::text), ?, ?, 'x' from generate_series(1, 1001) as number`,
    [author.id, reshare.id],
  )

  await prune(test.pod, options({ withComments: true }))

  expect(await test.pod.db('posts').where({ guid: reshare.guid })).toEqual([])
  expect(await test.pod.db('posts').where({ id: root.id }).select('resharesCount')).toEqual([{ resharesCount: 1 }])
})

it('a notification that was read before its limit keeps no post', async () => {
  const post = await addOldPost()
  const row = { guid: newGuid(), userId: local.userId, type: 'also_commented', postId: post.id }
  await insert('notifications', { ...row, read: true, updatedAt: OLD })

  expect(await prune(test.pod, options({ notificationDays: 0 }))).toMatchObject({ rows: 0 })
  expect(await prune(test.pod, options({ notificationDays: 90 }))).toMatchObject({ rows: 1 })
})

it('a run removes at most the given number of rows, and the next one the rest', async () => {
  const posts = [await addOldPost(), await addOldPost(), await addOldPost()]

  const preview = await previewPrune(test.pod, options({ limit: 2 }))
  expect(preview.rows).toBe(2)
  expect(await prune(test.pod, options({ limit: 2 }))).toEqual(preview)
  expect((await Promise.all(posts.map(isStored))).filter(Boolean)).toHaveLength(1)
  expect(await prune(test.pod, options())).toMatchObject({ rows: 1 })
})

it('a run ends with its signal after a transaction, and the next one removes the rest', async () => {
  const interruption = new AbortController()
  await test.pod.db.raw(
    `insert into posts (guid, author_id, type, public, text, created_at, stored_at, interacted_at)
     select lpad(number::text, 32, '0'), :author, 'StatusMessage', true, 'x', :old, :old, :old
     from generate_series(1, 700) as number`,
    { author: author.id, old: OLD },
  )

  const first = await prune(test.pod, options({ signal: interruption.signal, report: () => interruption.abort() }))
  const rest = await prune(test.pod, options())

  expect(first.rows).toBeLessThanOrEqual(500)
  expect(rest.rows).toBeGreaterThan(0)
  expect(first.rows + rest.rows).toBe(700)
})

it('a post that another transaction has locked is left for the next run', async () => {
  const post = await addOldPost()
  await test.pod.db.transaction(async (transaction) => {
    await transaction.raw('select from posts where id = ? for key share', [post.id])
    expect(await prune(test.pod, options())).toMatchObject({ rows: 0 })
  })
  expect(await prune(test.pod, options())).toMatchObject({ rows: 1 })
})

it('rows beyond the days of the settings are removed once a day', async () => {
  const retention = { posts: 90, withComments: false, notifications: 90, dead: 30, tombstones: 90 }
  const pod = { ...test.pod, config: { ...test.pod.config, retention } }
  const { db } = test.pod
  await addOldPost()
  const kept = await insert('notifications', notification(false))
  await insert('notifications', notification(true))
  await db('tombstones').insert({ targetType: 'Post', guid: newGuid(), deletedById: author.id, createdAt: OLD })
  await insert('outbox', { queue: 'outbound', name: 'dispatch', data: {}, failedAt: OLD })

  const removedRows = await continuePrune(pod, 20_000)
  expect(removedRows).toEqual({ posts: 1, notifications: 1, dead: 1, tombstones: 1 })
  expect(Object.keys(removedRows)).toEqual(['dead', 'tombstones', 'notifications', 'posts']) // posts may need all the time
  expect(await db('notifications').where({ type: 'contacts_birthday' }).pluck('id')).toEqual([kept])

  await addOldPost()
  expect(await continuePrune(pod, 20_000)).toEqual({ dead: 0, tombstones: 0 })
  await db('prune_progress').update({ finishedAt: db.raw(`now() - interval '25 hours'`) })
  expect(await continuePrune(pod, 20_000)).toMatchObject({ posts: 1 })
})

it('the oldest dead letters of own work are removed beyond a number and beyond bytes; those of messages have their own bound', async () => {
  const retention = { posts: 0, withComments: false, notifications: 0, dead: 30, tombstones: 90 }
  const pod = { ...test.pod, config: { ...test.pod.config, retention } }
  const { db } = test.pod
  const ago = (minutes: number) => new Date(Date.now() - minutes * 60_000)
  const job = (minutes: number, name = 'dispatch') => ({ queue: 'outbound', name, data: {}, failedAt: ago(minutes) })
  const podId = await insert('pods', { host: 'away.example', port: 443 })
  const messageId = await insert('outbound_messages', {
    record: 'profile',
    guid: newGuid(),
    entity: '',
    verb: 'create',
    public: true,
    senderId: local.personId,
  })
  const delivery = (minutes: number, personId: number | null, envelope: string) => ({
    ...{ messageId, podId, personId, state: 'dead', diedAt: ago(minutes), encryptedEnvelope: envelope },
  })
  await db('outbox').insert([job(5), job(3), job(1), job(9, 'receive-public'), job(9, 'receive-private')])
  await db('deliveries').insert([delivery(4, null, 'x'.repeat(50)), delivery(2, author.id, 'x'.repeat(50))])
  const left = async () => [
    (await db('outbox').where({ name: 'dispatch' })).length,
    (await db('deliveries').where({ podId })).map(({ personId }) => personId),
    (await db('outbox').whereIn('name', ['receive-public', 'receive-private'])).length,
  ]

  await continuePrune(pod, 20_000, { maxRows: 5, maxBytes: 100 })
  expect(await left()).toEqual([3, [null, author.id], 2])
  expect(await continuePrune(pod, 20_000, { maxRows: 3, maxBytes: 100 })).toMatchObject({ dead: 2 })
  expect(await left()).toEqual([2, [author.id], 2])
  expect(await continuePrune(pod, 20_000, { maxRows: 3, maxBytes: 49 })).toMatchObject({ dead: 2 })
  expect(await left()).toEqual([1, [], 2])
})

it('dead letters of one moment are removed only beyond the limits, and last those that become due again', async () => {
  const retention = { posts: 0, withComments: false, notifications: 0, dead: 30, tombstones: 0 }
  const pod = { ...test.pod, config: { ...test.pod.config, retention } }
  const { db } = test.pod
  await db('outbox').delete()
  const podId = await insert('pods', { host: 'blocked.example', port: 443 })
  const message = { record: 'profile', guid: newGuid(), entity: '', verb: 'create', public: true }
  const messageId = await insert('outbound_messages', { ...message, senderId: local.personId })
  const diedAt = new Date(Date.now() - 60_000)
  const delivery = async (lastFault: string | null, createdAt = diedAt) => {
    const { personId } = await addUserRow(test.pod, newGuid())
    return insert('deliveries', { messageId, podId, personId, state: 'dead', diedAt, lastFault, createdAt })
  }
  const job = { queue: 'outbound', name: 'dispatch', data: {} }
  await insert('outbox', { ...job, failedAt: diedAt })
  const newJob = await insert('outbox', { ...job, failedAt: new Date() })
  const revivable = [await delivery('pod_blocked'), await delivery('pod_asleep'), await delivery('pod_blocked')]
  await delivery('pod_blocked', new Date(Date.now() - 15 * 86_400_000))
  const refused = [await delivery(null), await delivery('http_status')]
  const left = async () => [
    await db('outbox').where({ name: 'dispatch' }).orderBy('id').pluck('id'),
    await db('deliveries').where({ podId }).orderBy('id').pluck('id'),
  ]

  const limitTo = (maxRows: number) => continuePrune(pod, 20_000, { maxRows, maxBytes: 1_000 })
  expect(await limitTo(6)).toEqual({ dead: 2 })
  expect(await left()).toEqual([[newJob], [...revivable, ...refused]])
  expect(await limitTo(5)).toEqual({ dead: 1 })
  expect(await left()).toEqual([[newJob], [...revivable, refused[1]]])
  expect(await limitTo(2)).toEqual({ dead: 3 })
  expect(await left()).toEqual([[], revivable.slice(1)])
})

it('the metrics count removed rows, by command too, and the rows that the last daily run has found', async () => {
  const retention = { posts: 90, withComments: false, notifications: 90, dead: 30, tombstones: 90 }
  const pod = { ...test.pod, config: { ...test.pod.config, retention } }
  const { db } = test.pod
  const postsIn = async () => (await readSharedMetrics(db)).pruned.find(({ category }) => category === 'posts')
  await db('prune_progress').delete()
  const { kept } = await previewPrune(test.pod, options())
  const stay = Object.values(kept).reduce((sum, each) => sum + each, 0)

  await addOldPost()
  await prune(test.pod, options())
  expect(await postsIn()).toEqual({ category: 'posts', count: 1, candidates: null })
  await addOldPost()
  await continuePrune(pod, 20_000)
  expect(await postsIn()).toEqual({ category: 'posts', count: 2, candidates: 1 + stay })
})

function notification(read: boolean) {
  const day = read ? '2026-01-01' : '2026-01-02'
  return {
    ...{ guid: newGuid(), userId: local.userId, type: 'contacts_birthday', personId: author.id, day },
    ...{ read, createdAt: OLD, updatedAt: OLD },
  }
}
