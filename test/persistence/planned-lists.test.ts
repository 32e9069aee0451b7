import type { Knex } from 'knex'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Viewer } from '../../src/domain/accounts/viewers.js'
import { newGuid } from '../../src/domain/new-guid.js'
import { discoverPersonJob } from '../../src/jobs/definitions.js'
import { enqueueJobsOfKind } from '../../src/jobs/outbox/enqueue-jobs.js'
import { deleteOutboxRows, loadJob } from '../../src/jobs/outbox/load-job.js'
import { findMessageRows } from '../../src/jobs/outbox/message-rows.js'
import { deferMessages, type NewWaitingMessage } from '../../src/jobs/waiting/store-waiting-messages.js'
import {
  listConversationsOfPerson,
  listMessagesOfConversation,
} from '../../src/persistence/conversations/list-conversations.js'
import { openDatabase } from '../../src/persistence/database/database.js'
import { WEB_DATABASE_LIMITS } from '../../src/persistence/database/limits.js'
import { inTransaction } from '../../src/persistence/database/transactions.js'
import {
  insertConversationMessages,
  type NewConversationMessage,
} from '../../src/persistence/inbound/insert-conversations.js'
import { findPostAuthors, insertPosts, type ReceivedPost } from '../../src/persistence/inbound/insert-posts.js'
import {
  insertComments,
  insertLikes,
  insertVotes,
  type ReceivedComment,
  type ReceivedLike,
  type ReceivedVote,
} from '../../src/persistence/inbound/insert-relayables.js'
import { findPostReferences } from '../../src/persistence/inbound/post-references.js'
import { findRetractionTargets } from '../../src/persistence/inbound/retraction-targets.js'
import { listCommentsOfPost } from '../../src/persistence/interactions/list-comments.js'
import { listReactions } from '../../src/persistence/interactions/list-reactions.js'
import { Person } from '../../src/persistence/models/person.js'
import { Post } from '../../src/persistence/models/post.js'
import { insertCausedNotifications } from '../../src/persistence/notifications/insert-notifications.js'
import { listNotificationsOfUser } from '../../src/persistence/notifications/list-notifications.js'
import type { NotificationCauseRows } from '../../src/persistence/notifications/notification-recipients.js'
import { listPhotosOfPerson } from '../../src/persistence/photos/list-photos.js'
import { listPostsOfPerson } from '../../src/persistence/posts/list-posts.js'
import { publishRows } from '../support/databases/publish-rows.js'
import { viewerOf } from '../support/people/local-users.js'
import { buildPod, type TestPod } from '../support/pods/build-pod.js'

const MANY = 4_000
/** A page and one row more. */
const ROWS_OF_PAGE = 16
const ACTIVITY_TABLES = ['participations', 'likes', 'post_visibilities', 'reports']
/** PostgreSQL makes a custom plan for each of the first five executions. */
const CUSTOM_PLANS = 5

let testPod: TestPod
let viewer: Viewer
let authorGuid: string
/** The guid of the first post and the first conversation. */
let postGuid: string
/** One connection for all prepared statements. */
let db: Knex
beforeAll(async () => {
  testPod = await buildPod()
  viewer = await viewerOf(testPod.pod, (await testPod.people('alice')).alice)
  const { config } = testPod.pod
  db = openDatabase({ ...WEB_DATABASE_LIMITS, url: config.databaseUrl ?? '', pool: 1, applicationName: 'test' })
  await fill()
  authorGuid = (await Person.query(db).findById(viewer.personId).throwIfNotFound()).guid
  postGuid = (await Post.query(db).findById(1).throwIfNotFound()).guid
})
afterAll(async () => {
  await db.destroy()
  await testPod.close()
})

/** The viewer has rows in all tables. */
async function fill(): Promise<void> {
  const guid = `md5(i::text)`
  const { personId, userId } = viewer
  const each = `generate_series(1, ${MANY}) as i`
  const statements = [
    `insert into posts (guid, author_id, type, public) select ${guid}, ${personId}, 'StatusMessage', i % 2 = 0 from ${each}`,
    `insert into participations (guid, post_id, author_id) select guid, id, ${personId} from posts`,
    `insert into likes (guid, post_id, author_id) select guid, id, ${personId} from posts`,
    `insert into post_visibilities (post_id, user_id, author_id, created_at) select id, ${userId}, author_id, created_at from posts`,
    `insert into reports (post_id, user_id, reason) select id, ${userId}, 'spam' from posts`,
    `insert into comments (guid, post_id, author_id, text) select guid, 1, ${personId}, 'Tea' from posts`,
    `insert into notifications (guid, user_id, type, post_id) select guid, ${userId}, 'liked', id from posts`,
    `insert into notification_actors (notification_id, person_id) select id, ${personId} from notifications`,
    `insert into conversations (guid, author_id, subject) select guid, ${personId}, 'Tea' from posts`,
    `insert into conversation_visibilities (conversation_id, person_id, created_at, updated_at)
     select id, ${personId}, created_at, updated_at from conversations`,
    `insert into photos (guid, author_id, remote_path, name, public) select guid, ${personId}, '', guid, true from posts`,
    'analyze',
  ]
  for (const statement of statements) await db.raw(statement)
}

it.each<[string, () => Promise<unknown>]>([
  ['notifications newest first', () => listNotificationsOfUser(db, viewer.userId, { limit: 15 })],
  ['notifications newest first, long', () => listNotificationsOfUser(db, viewer.userId, { limit: 100 })],
  ['conversations newest first', () => listConversationsOfPerson(db, viewer.personId, { limit: 15 })],
  ['conversations newest first, long', () => listConversationsOfPerson(db, viewer.personId, { limit: 100 })],
  ['likes-of-post 16', () => listReactions(db, viewer, { kind: 'likes-of-post', id: 1 }, { offset: 0, limit: 15 })],
  [
    'reshares-of-post 101',
    () => listReactions(db, viewer, { kind: 'reshares-of-post', id: 1 }, { offset: 0, limit: 99 }),
  ],
  [
    'comments readable oldest first',
    () => listCommentsOfPost(db, viewer, { postGuid, visibility: 'readable', page: { limit: 15 } }),
  ],
  [
    'messages 16',
    () => listMessagesOfConversation(db, viewer.personId, { conversationGuid: postGuid, offset: 0, limit: 15 }),
  ],
  ['posts-of-person readable newest first', posts],
  [
    'photos-of-person readable newest first',
    () => listPhotosOfPerson(db, viewer, { authorGuid, visibility: 'readable', page: { limit: 15 } }),
  ],
  ['caused-notifications comments moving', () => causeNotifications({ comments: [1], shouldMoveActivity: true })],
  ['caused-notifications posts likes', () => causeNotifications({ posts: [1], likes: [1] })],
  ['new-messages', () => inTransaction(db, (transaction) => insertConversationMessages(transaction, [message()]))],
  ['references', () => findPostReferences(db, { posts: [postGuid], deleted: [postGuid] })],
  ['retraction-targets', () => findRetractionTargets(db, [{ type: 'Post', guid: postGuid }])],
  ['authors-of-posts', () => findPostAuthors(db, [postGuid])],
  ['new-posts', () => inTransaction(db, (transaction) => insertPosts(transaction, [post()]))],
  ['new-comments', () => inTransaction(db, (transaction) => insertComments(transaction, [comment()]))],
  ['new-likes', () => inTransaction(db, (transaction) => insertLikes(transaction, [like()]))],
  ['new-votes', () => inTransaction(db, (transaction) => insertVotes(transaction, [vote()]))],
  [
    'resume-messages',
    () => inTransaction(db, (transaction) => deferMessages(testPod.pod, transaction, [], [`post:${postGuid}`])),
  ],
  ['new-waiting', () => park(waiting())],
  [
    'new-outbox-rows',
    () =>
      inTransaction(db, (transaction) => enqueueJobsOfKind(testPod.pod, transaction, discoverPersonJob, [{ address }])),
  ],
  ['requested-already', () => park({ ...waiting(), fetchFrom: address })],
  ['outbox-row', () => loadJob(db, { outboxId: 1 })],
  ['messages-of-rows', () => findMessageRows(db, [1])],
  ['delete-outbox-rows', () => deleteOutboxRows(db, [1])],
  ['live-event-outbox-rows', () => publishRows(db, { posts: [1] })],
])('the statement %s has a generic plan', async (name, list) => {
  for (let request = 0; request < 2 * CUSTOM_PLANS; request += 1) await list()

  const { rows } = await db.raw('select generic_plans, custom_plans from pg_prepared_statements where name = ?', [name])
  expect(rows).toEqual([{ generic_plans: CUSTOM_PLANS, custom_plans: CUSTOM_PLANS }])
})

it('a list of posts reads the rows of its page, and not all rows of the reader', async () => {
  await posts()

  const { rows } = await db.raw(
    `explain (analyze, format json) execute "posts-of-person readable newest first"(${viewer.userId}, ${viewer.personId}, '${authorGuid}', 16)`,
  )
  expect(rowsReadIn(rows)).toBe(ROWS_OF_PAGE)
})

function posts() {
  return listPostsOfPerson(db, viewer, { authorGuid, visibility: 'readable', page: { limit: 15 } })
}

function causeNotifications(causes: Partial<NotificationCauseRows> & { readonly shouldMoveActivity?: boolean }) {
  const none = { posts: [], comments: [], likes: [], reshares: [], sharing: [], newlyVisiblePosts: [] }
  return inTransaction(db, (transaction) => insertCausedNotifications(transaction, { ...none, ...causes }, new Date()))
}

function message(): NewConversationMessage {
  return {
    guid: newGuid(),
    conversationGuid: postGuid,
    author: 'alice@pod.example',
    text: 'Tea',
    createdAt: new Date(),
    arrivedAt: new Date(),
  }
}

const address = 'bob@elsewhere.example'

function waiting(): NewWaitingMessage {
  const waitsFor = `person:${newGuid()}@elsewhere.example` as const
  return { waitsFor, payload: newGuid(), acceptedAt: new Date(), times: 0, isVerified: true }
}

function park(message: NewWaitingMessage) {
  return inTransaction(db, (transaction) => deferMessages(testPod.pod, transaction, [message], []))
}

function relayable() {
  return { guid: newGuid(), author: 'alice@pod.example', parent: postGuid, createdAt: new Date() }
}

function comment(): ReceivedComment {
  return { ...relayable(), text: 'Tea' }
}

function like(): ReceivedLike {
  return { ...relayable(), parentType: 'Post', positive: true }
}

function vote(): ReceivedVote {
  return { ...relayable(), answer: newGuid() }
}

function post(): ReceivedPost {
  return {
    guid: newGuid(),
    author: 'alice@pod.example',
    type: 'StatusMessage',
    public: true,
    text: 'Tea',
    createdAt: new Date(0),
  }
}

/** The most rows that a step of the plan reads of the tables of activity. */
function rowsReadIn(plan: unknown): number {
  if (typeof plan !== 'object' || plan === null) return 0
  const isActivityTable = ACTIVITY_TABLES.includes(Reflect.get(plan, 'Relation Name'))
  const own = isActivityTable ? Number(Reflect.get(plan, 'Actual Rows')) : 0
  return Math.max(own, ...Object.values(plan).map(rowsReadIn))
}
