import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { newGuid } from '../../src/domain/new-guid.js'
import { findRetractionTargets } from '../../src/persistence/inbound/retraction-targets.js'
import type { Post } from '../../src/persistence/models/post.js'
import { emptyPeople } from '../../src/persistence/people/empty-people.js'
import { purgeDeletedPosts, ROW_BATCH_SIZE } from '../../src/persistence/posts/delete-posts.js'
import { destroyEntities } from '../../src/persistence/posts/destroy-entities.js'
import { addPost } from '../support/databases/rows.js'
import type { RemotePerson } from '../support/people/remote-people.js'
import { type FederationPod, openFederationPod } from '../support/pods/federation-pod.js'

const MANY = ROW_BATCH_SIZE + 1
const TABLES_BELOW = ['comments', 'likes', 'participations', 'poll_participations', 'polls'] as const

let pod: FederationPod
let quin: RemotePerson
let remy: RemotePerson
beforeAll(async () => {
  pod = await openFederationPod()
})
afterAll(() => pod.close())
beforeEach(async () => {
  await pod.empty('posts, people, outbound_messages')
  ;({ quin, remy } = await pod.remotePeople('quin', 'remy'))
})

async function addComments(post: Post, count: number): Promise<readonly string[]> {
  const comments = Array.from({ length: count }, () => ({
    guid: newGuid(),
    postId: post.id,
    authorId: remy.id,
    text: 'Hi',
  }))
  await pod.db.batchInsert('comments', comments)
  return comments.map(({ guid }) => guid)
}

/** Adds one row below the post for each of many people. */
async function addByMany(table: 'likes' | 'participations' | 'poll_participations', post: Post): Promise<void> {
  await pod.db.raw(
    `insert into people (guid, address, public_key)
     select md5('person' || i), 'person' || i || '@far.example', 'key' from generate_series(1, ?::integer) as i`,
    [MANY],
  )
  const [poll] = await pod.db('polls').insert({ guid: newGuid(), postId: post.id, question: 'Tea?' }).returning('id')
  const answerRow = { guid: newGuid(), pollId: poll.id, answer: 'Yes', position: 0 }
  const [answer] = await pod.db('pollAnswers').insert(answerRow).returning('id')
  const columns = {
    likes: ['post_id', post.id],
    participations: ['post_id', post.id],
    poll_participations: ['poll_answer_id, poll_id', `${answer.id}, ${poll.id}`],
  } as const
  const [names, values] = columns[table]
  await pod.db.raw(
    `insert into ${table} (guid, author_id, ${names})
     select md5('row' || id), id, ${values} from people where address like 'person%'`,
  )
}

const countRowsBelow = () => pod.rows('posts', ...TABLES_BELOW)
const destroyPost = (post: Post) => pod.db.transaction((transaction) => destroyEntities(transaction, 'post', [post.id]))

describe('a post with more rows under it than one transaction deletes', () => {
  it('is hidden at once, and purged later in chunks', async () => {
    const post = await addPost(pod, quin)
    const reshare = await addPost(pod, remy, { type: 'Reshare', text: '', rootId: post.id })
    const [comment = ''] = await addComments(post, 2 * ROW_BATCH_SIZE + 1)

    const destroyed = await destroyPost(post)

    expect(destroyed).toEqual([{ record: 'post', id: post.id, guid: post.guid }])
    expect(await pod.db('posts').whereNotNull('authorId').select('id', 'rootId')).toEqual([
      { id: reshare.id, rootId: null },
    ])
    expect(await pod.db('posts').where({ id: post.id }).first('public', 'text', 'guid')).toEqual({
      public: false,
      text: '',
      guid: expect.stringMatching(/^deleted-post-\d{12}$/),
    })
    const target = await findRetractionTargets(pod.db, [{ type: 'Comment', guid: comment }])
    expect([...target.values()]).toMatchObject([{ threadPost: undefined }])

    const deletions: string[] = []
    const note = ({ sql }: { sql: string }) => void (sql.startsWith('delete from comments') && deletions.push(sql))
    pod.db.on('query', note)
    expect(await purgeDeletedPosts(pod.db)).toBe(1)
    pod.db.off('query', note)

    expect(await countRowsBelow()).toEqual([1, 0, 0, 0, 0, 0])
    expect(deletions.length).toBeGreaterThanOrEqual(3)
  })

  it.each(['likes', 'participations', 'poll_participations'] as const)('is recognised by its %s', async (table) => {
    const post = await addPost(pod, quin)
    await addByMany(table, post)

    await destroyPost(post)

    expect((await pod.rows(table))[0]).toBe(MANY)
    await purgeDeletedPosts(pod.db)
    expect(await countRowsBelow()).toEqual([0, 0, 0, 0, 0, 0])
  })

  it('is recognised by the likes of its comments', async () => {
    const post = await addPost(pod, quin)
    await addComments(post, 1)
    await addByMany('likes', post)
    await pod.db.raw('update likes set comment_id = (select id from comments), post_id = null')

    await destroyPost(post)

    expect((await pod.rows('likes'))[0]).toBe(MANY)
    await purgeDeletedPosts(pod.db)
    expect(await countRowsBelow()).toEqual([0, 0, 0, 0, 0, 0])
  })

  it('has no deliveries of the rows that are purged with it', async () => {
    const post = await addPost(pod, quin)
    const [guid = ''] = await addComments(post, MANY)
    await destroyPost(post)
    const about = { record: 'comment', verb: 'create', senderId: quin.id, public: true, entity: '<comment/>' }
    await pod.db('outboundMessages').insert([
      { ...about, guid },
      { ...about, guid: newGuid() },
    ])

    await purgeDeletedPosts(pod.db)

    expect((await pod.rows('outbound_messages'))[0]).toBe(1)
  })
})

it('a post with as many rows under it as one transaction deletes is deleted at once', async () => {
  const post = await addPost(pod, quin)
  await addComments(post, ROW_BATCH_SIZE)

  await destroyPost(post)

  expect(await countRowsBelow()).toEqual([0, 0, 0, 0, 0, 0])
})

it('the posts of a closed person with many posts are hidden at once, and purged later', async () => {
  await pod.db.raw(
    `insert into posts (guid, author_id, type, public, text)
     select md5('post' || i), ?, 'StatusMessage', true, 'one of many' from generate_series(1, ?::integer) as i`,
    [quin.id, MANY],
  )

  await pod.db.transaction((transaction) => emptyPeople(transaction, [quin.id], new Date()))

  expect(await pod.db('posts').whereNotNull('authorId')).toEqual([])
  expect(await purgeDeletedPosts(pod.db)).toBe(MANY)
  expect((await pod.rows('posts'))[0]).toBe(0)
})
