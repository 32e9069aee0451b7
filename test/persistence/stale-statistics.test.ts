import { createHash } from 'node:crypto'
import type { Knex } from 'knex'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { newGuid } from '../../src/domain/new-guid.js'
import { storeMessage, storePersonalMessages } from '../../src/domain/outbound/outgoing-messages.js'
import { receiveBatch } from '../../src/federation/inbound/receive-batch.js'
import { dispatchRelays } from '../../src/federation/outbound/dispatch-relays.js'
import { dispatchRelaysJob } from '../../src/jobs/definitions.js'
import { checkForDueWork } from '../../src/jobs/operations/due-work.js'
import { enqueueJobsOfKind } from '../../src/jobs/outbox/enqueue-jobs.js'
import { deleteOutboxRows, loadJob } from '../../src/jobs/outbox/load-job.js'
import { findMessageRows } from '../../src/jobs/outbox/message-rows.js'
import { findOverdueRows } from '../../src/jobs/outbox/sweep-rows.js'
import { deleteMessagesBeyondLimits } from '../../src/jobs/waiting/delete-beyond-limits.js'
import { giveUpOutboxRow, resumeOverdue } from '../../src/jobs/waiting/resume-messages.js'
import {
  deleteLookups,
  findDueLookups,
  findHostsWithLostLookups,
  findLookedUp,
  recordFailedLookups,
} from '../../src/jobs/waiting/signer-lookups.js'
import { deferMessages } from '../../src/jobs/waiting/store-waiting-messages.js'
import { giveUpOverdueUnverified, giveUpSigners } from '../../src/jobs/waiting/unverified-messages.js'
import {
  findListedConversation,
  listConversationsOfPerson,
  listMessagesOfConversation,
} from '../../src/persistence/conversations/list-conversations.js'
import { openDatabase } from '../../src/persistence/database/database.js'
import { WEB_DATABASE_LIMITS, WORKER_DATABASE_LIMITS } from '../../src/persistence/database/limits.js'
import { inTransaction } from '../../src/persistence/database/transactions.js'
import { listCommentsOfPost } from '../../src/persistence/interactions/list-comments.js'
import { listReactions } from '../../src/persistence/interactions/list-reactions.js'
import { hasPostponedPosts, planParticipations } from '../../src/persistence/interactions/outgoing-participations.js'
import { Person } from '../../src/persistence/models/person.js'
import { Post } from '../../src/persistence/models/post.js'
import { listNotificationsOfUser } from '../../src/persistence/notifications/list-notifications.js'
import { giveUpDeliveries } from '../../src/persistence/outbound/dead-deliveries.js'
import { DELIVERY_PRIORITY } from '../../src/persistence/outbound/delivery-priority.js'
import { recordDeliveryResults } from '../../src/persistence/outbound/delivery-results.js'
import { findOverduePods, takeDueDeliveries } from '../../src/persistence/outbound/due-deliveries.js'
import { findFetchableEntity } from '../../src/persistence/outbound/find-fetchable.js'
import { findPodsToCheck } from '../../src/persistence/outbound/known-pods.js'
import { planRetractionsToBlocked } from '../../src/persistence/outbound/plan-retractions-to-blocked.js'
import { leasePods, releasePod } from '../../src/persistence/outbound/pod-leases.js'
import { findPersonWithRelationship } from '../../src/persistence/people/find-person-with-relationship.js'
import { listPhotosOfPerson } from '../../src/persistence/photos/list-photos.js'
import { findListedPost } from '../../src/persistence/posts/find-listed-post.js'
import { findReadablePost } from '../../src/persistence/posts/find-readable-post.js'
import { listPostsOfPerson } from '../../src/persistence/posts/list-posts.js'
import { listTagNames } from '../../src/persistence/posts/list-tags.js'
import { listStreamPosts, type Stream } from '../../src/persistence/streams/list-streams.js'
import type { Services } from '../../src/services/services.js'
import {
  commentBy,
  likeBy,
  participationBy,
  photoBy,
  postBy,
  profileOf,
  reshareBy,
} from '../support/federation/entities.js'
import { privateMessage, publicMessage } from '../support/federation/inbound-messages.js'
import type { LocalUser } from '../support/people/local-users.js'
import type { RemotePerson } from '../support/people/remote-people.js'
import { type FederationPod, openFederationPod } from '../support/pods/federation-pod.js'

/** Rows of each table that grows. */
const MANY = 6_000
/** The most rows that a statement may read. */
const MAX_ROWS = 1_500
/** The most pages of tables and indexes that a statement may read. */
const MAX_PAGES = 6_000
/** After five executions PostgreSQL uses the generic plan. */
const RUNS = 7

let pod: FederationPod
/** One connection each, opened as by workers and by the web process. */
let workerDb: Knex
let webDb: Knex
let ann: LocalUser
let quin: RemotePerson
let podId: number
let postGuid: string
beforeAll(async () => {
  pod = await openFederationPod()
  ;({ ann } = await pod.localUsers('ann'))
  ;({ quin } = await pod.remotePeople('quin'))
  podId = (await pod.db('people').where({ id: quin.id }).first()).podId
  const url = pod.config.databaseUrl ?? ''
  workerDb = openDatabase({ ...WORKER_DATABASE_LIMITS, url, pool: 1, applicationName: 'test' })
  webDb = openDatabase({ ...WEB_DATABASE_LIMITS, url, pool: 1, applicationName: 'test' })
  await fillAfterAnalyze()
  postGuid = (await Post.query(pod.db).where({ authorId: ann.id }).first().throwIfNotFound()).guid
})
afterAll(async () => {
  await workerDb.destroy()
  await webDb.destroy()
  await pod.close()
})

/** Fills the tables after `analyze`, without autovacuum: in the statistics they are nearly empty. */
async function fillAfterAnalyze(): Promise<void> {
  const { rows } = await pod.db.raw(
    `select format('%I.%I', schemaname, tablename) as name from pg_tables where schemaname in ('public', 'bullmq')`,
  )
  for (const { name } of rows) await pod.db.raw(`alter table ${name} set (autovacuum_enabled = false)`)
  await pod.db.raw('analyze')
  const each = `generate_series(1, ${MANY}) as i`
  const statements = [
    `insert into posts (guid, author_id, type, public, text) select md5('p' || i), ${ann.id}, 'StatusMessage', true, 'Tea' from ${each}`,
    `insert into comments (guid, post_id, author_id, text) select md5('c' || i), (select min(id) from posts), ${quin.id}, 'Tea' from ${each}`,
    `insert into likes (guid, post_id, author_id) select md5('l' || id), id, ${quin.id} from posts`,
    `insert into participations (guid, post_id, author_id) select md5('s' || id), id, ${quin.id} from posts`,
    `insert into notifications (guid, user_id, type, post_id) select md5('n' || id), ${ann.userId}, 'liked', id from posts`,
    `insert into notification_actors (notification_id, person_id) select id, ${quin.id} from notifications`,
    `insert into conversations (guid, author_id, subject) select md5('v' || i), ${ann.id}, 'Tea' from ${each}`,
    `insert into conversation_visibilities (conversation_id, person_id, created_at, updated_at)
     select id, ${ann.id}, created_at, updated_at from conversations`,
    `insert into outbox (queue, name, data, sweep_at) select 'relay', 'dispatch-relays', '{}', now() - interval '1 minute' from ${each}`,
    `insert into outbox (queue, name, data, payload, accepted_at)
     select 'inbound', 'receive-waited', '{}', 'x', now() from ${each}`,
    `insert into waiting (waits_for, name, payload, accepted_at, digest, due_at)
     select 'post:' || md5('w' || i), 'receive-public', 'x', now(), sha256(i::text::bytea), now() - interval '1 minute' from ${each}`,
    `insert into waiting (waits_for, name, payload, accepted_at, digest, due_at, signed, sender_host, source, bytes)
     select 'person:u' || i || '@h' || i % 60 || '.example', 'receive-public', 'x', now(), sha256(('u' || i)::bytea),
       now() + interval '1 hour', false, 'h' || i % 60 || '.example', '2001:db8:' || i % 7 || ':1', 1
     from ${each}`,
    `insert into signer_lookups (address, host, source)
     select 'u' || i || '@h' || i % 60 || '.example', 'h' || i % 60 || '.example', '2001:db8:' || i % 7 || ':1' from ${each}`,
    `insert into messages (guid, conversation_id, author_id, text) select md5('m' || id), id, ${quin.id}, 'Tea' from conversations`,
    `insert into photos (guid, author_id, public, name, remote_path)
     select md5('f' || i), ${quin.id}, true, 'a.jpg', 'https://far.example/' from ${each}`,
    `insert into tags (name, public) select 'tea' || i, true from ${each}`,
    `insert into taggings (tag_id, post_id, created_at) select (select min(id) from tags), id, created_at from posts where id % 2 = 0`,
    `insert into mentions (post_id, person_id, created_at) select id, ${quin.id}, created_at from posts where id % 2 = 0`,
    `insert into tombstones (target_type, guid, deleted_by_id) select 'Post', md5('t' || i), ${quin.id} from ${each}`,
    `insert into pods (host) select 'pod' || i || '.example' from ${each}`,
    `insert into people (guid, address, public_key, pod_id) select md5('h' || id), 'one@' || host, 'key', id from pods where host like 'pod%'`,
    // As a flood leaves it: relays under one post, for one pod.
    `insert into outbound_messages (record, guid, verb, sender_id, public, entity)
     select 'comment', md5('c' || i), 'create', ${ann.id}, true, '<comment><parent_guid>' || md5('p1') || '</parent_guid></comment>'
     from ${each}`,
    `insert into deliveries (message_id, pod_id, priority) select id, ${podId}, ${DELIVERY_PRIORITY.relay} from outbound_messages`,
  ]
  // A server process that has nothing to do reports its reads ten seconds later, which would be during a test.
  await pod.db.transaction(async (transaction) => {
    for (const statement of statements) await transaction.raw(statement)
    await transaction.raw('select pg_stat_force_next_flush()')
  })
}

interface Cost {
  readonly rows: number
  readonly pages: number
}

/** The rows and pages that all statements have read so far, by the statistics of the server, without the tables of the queue. */
async function countReads(db: Knex): Promise<Cost> {
  await db.raw('select pg_stat_force_next_flush()')
  const { rows } = await db.raw(
    `select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::integer as rows,
       (select sum(heap_blks_hit + heap_blks_read + coalesce(idx_blks_hit + idx_blks_read, 0)) from pg_statio_user_tables where schemaname = 'public')::integer
         as pages
     from pg_stat_user_tables where schemaname = 'public'`,
  )
  return rows[0]
}

async function costOf(db: Knex, run: () => Promise<unknown>): Promise<Cost> {
  for (let time = 1; time < RUNS; time += 1) await run()
  const before = await countReads(db)
  await run()
  const after = await countReads(db)
  return { rows: after.rows - before.rows, pages: after.pages - before.pages }
}

const worker = (): Services => ({ ...pod, db: workerDb })
const within = (run: (transaction: Knex.Transaction) => Promise<unknown>) => inTransaction(workerDb, run)

function retraction(guid = newGuid()) {
  return {
    record: 'comment',
    guid,
    verb: 'retract',
    senderId: ann.id,
    public: true,
    entity: { type: 'retraction', author: ann.address, target_guid: guid, target_type: 'Comment' },
  } as const
}

const retracted = (target_type: 'Comment' | 'Post', target_guid: string) =>
  ({ type: 'retraction', author: quin.address, target_guid, target_type }) as const

const contact = () =>
  ({
    type: 'contact',
    author: quin.address,
    recipient: ann.address,
    following: true,
    sharing: true,
    blocking: false,
  }) as const

const leaseId = '00000000-0000-4000-8000-000000000000'

async function settleOneDelivery(): Promise<unknown> {
  await leasePods(workerDb, [{ podId, leaseId, leaseMs: 60_000, onlyProven: false }])
  const [first, second] = await takeDueDeliveries(workerDb, [{ podId, limit: 2 }])
  if (first === undefined || second === undefined) throw new Error('Nothing is due.')
  const refusal = {
    status: 400,
    fault: 'refused',
    countsAsAttempt: true,
    seconds: 60,
    isFinal: false,
    encryptedEnvelope: undefined,
  }
  const failed = [{ ...refusal, id: second.id }]
  const results = {
    podId,
    leaseId,
    leaseMs: 60_000,
    delivered: [first.id],
    failed,
    redirectsBeforeCheck: 3,
    hasResponded: true,
  }
  await recordDeliveryResults(workerDb, [{ ...results, podHealth: { kind: 'available' } }])
  return releasePod(workerDb, podId, leaseId)
}

async function relayComments(): Promise<unknown> {
  const relays = Array.from({ length: 32 }, (_, index) => `c${index + 1}`)
  const { rows } = await workerDb.raw('select md5(name) as guid from unnest(?::text[]) as name', [relays])
  const data = { relays: rows.map(({ guid }: { guid: string }) => ({ record: 'comment', guid })) }
  return dispatchRelays(worker(), { take: async () => [data] })
}

const hashOf = (name: string) => createHash('md5').update(name).digest('hex')
/** Returns another one of the stored rows each time. */
let nextOf = 1_000
const nextRow = (kind: string) => {
  nextOf += 1
  return hashOf(`${kind}${nextOf}`)
}

const unverifiedMessage = () => {
  nextOf += 1
  const senderHost = `h${nextOf % 60}.example`
  const waitsFor = `person:v${nextOf}@${senderHost}` as const
  return { ...message(), waitsFor, isVerified: false, senderHost, source: '2001:db8:1:1' }
}

function conversation() {
  const [guid, created_at] = [newGuid(), new Date('2025-05-06T07:08:09Z')]
  const first = {
    type: 'message',
    author: quin.address,
    guid: newGuid(),
    text: 'Tea',
    created_at,
    edited_at: undefined,
  } as const
  return {
    type: 'conversation',
    author: quin.address,
    guid,
    subject: 'Tea',
    created_at,
    participants: [quin.address, ann.address],
    messages: [{ ...first, conversation_guid: guid }],
  } as const
}

const message = () =>
  ({ waitsFor: `post:${newGuid()}`, payload: newGuid(), acceptedAt: new Date(), times: 0, isVerified: true }) as const

it.each<readonly [string, () => Promise<unknown>]>([
  ['the due deliveries of a pod', () => takeDueDeliveries(workerDb, [{ podId, limit: 20 }])],
  ['the first due delivery of a pod', () => takeDueDeliveries(workerDb, [{ podId, limit: 1 }])],
  ['the end of a delivery round', settleOneDelivery],
  [
    'a message to one person',
    () =>
      within((transaction) =>
        storeMessage(worker(), transaction, retraction(), { kind: 'people', personIds: [quin.id] }),
      ),
  ],
  [
    'a message to the subscribers of a post',
    () => within((transaction) => storeMessage(worker(), transaction, retraction(), { kind: 'post', postId: 1 })),
  ],
  [
    'messages to one person each',
    () =>
      within(async (transaction) => {
        await storePersonalMessages(worker(), transaction, [{ ...retraction(), public: false, personId: quin.id }])
      }),
  ],
  ['a batch of relays', relayComments],
  [
    'inserting outbox rows',
    () => within((transaction) => enqueueJobsOfKind(worker(), transaction, dispatchRelaysJob, [{ relays: [] }])),
  ],
  ['taking an outbox row', () => loadJob(workerDb, { outboxId: 17 })],
  ['deleting outbox rows', () => within((transaction) => deleteOutboxRows(transaction, [17, 18, 19]))],
  ['the messages of outbox rows', () => findMessageRows(workerDb, [MANY + 17])],
  ['the check for overdue outbox rows', () => checkForDueWork({ db: workerDb })],
  ['storing waiting messages', () => within((transaction) => deferMessages(worker(), transaction, [message()], []))],
  [
    'resuming waiting messages',
    () => within((transaction) => deferMessages(worker(), transaction, [], [`post:${newGuid()}`])),
  ],
  ['overdue waiting messages', () => within((transaction) => resumeOverdue(worker(), transaction, 10))],
  ['giving up a message', () => giveUpOutboxRow(worker(), 23, { fault: 'internal' })],
  ['a post is received', () => receiveBatch(worker(), [publicMessage(quin, postBy(quin))])],
  [
    'a comment is received',
    () =>
      receiveBatch(worker(), [publicMessage(quin, commentBy(quin, { guid: postGuid, author: ann.address } as never))]),
  ],
  [
    'a reshare is received',
    () =>
      receiveBatch(worker(), [
        publicMessage(quin, reshareBy(quin, { guid: nextRow('p'), author: ann.address } as never)),
      ]),
  ],
  ['a photo is received', () => receiveBatch(worker(), [publicMessage(quin, photoBy(quin))])],
  ['a profile is received', () => receiveBatch(worker(), [publicMessage(quin, profileOf(quin, { bio: newGuid() }))])],
  [
    'a participation is received',
    () =>
      receiveBatch(worker(), [
        publicMessage(quin, participationBy(quin, { guid: postGuid, author: ann.address } as never)),
      ]),
  ],
  [
    'the retraction of a comment is received',
    () => receiveBatch(worker(), [publicMessage(quin, retracted('Comment', nextRow('c')))]),
  ],
  [
    'the retraction of an unknown entity',
    () => receiveBatch(worker(), [publicMessage(quin, retracted('Post', newGuid()))]),
  ],
  ['a contact is received', () => receiveBatch(worker(), [privateMessage(quin, ann, contact())])],
  ['a conversation is received', () => receiveBatch(worker(), [privateMessage(quin, ann, conversation())])],
  ['the signers of messages', () => Person.findSigners(workerDb, [quin.address, 'one@pod17.example'])],
  [
    'storing unverified messages',
    () => within((transaction) => deferMessages(worker(), transaction, [unverifiedMessage()], [])),
  ],
  ['signers with a pending lookup', () => findLookedUp(workerDb, ['u7@h7.example'])],
  ['signers to look up at a host', () => findDueLookups(workerDb, 'h7.example', 4)],
  ['signers that were not found', () => recordFailedLookups(workerDb, ['u11@h11.example'], 100)],
  ['signers that were found', () => deleteLookups(workerDb, ['u12@h12.example'])],
  [
    'messages of a signer that is given up',
    () => within((transaction) => giveUpSigners(worker(), transaction, ['u13@h13.example'])),
  ],
  ['overdue unverified messages', () => within((transaction) => giveUpOverdueUnverified(worker(), transaction, 10))],
  [
    'a plan of participations',
    () => within((transaction) => planParticipations(transaction, [{ postGuid, guid: newGuid() }])),
  ],
  [
    'a plan of retractions to blocked people',
    () =>
      within((transaction) =>
        planRetractionsToBlocked(transaction, [
          { record: 'comment', guid: newGuid(), personId: quin.id },
          { record: 'like', guid: newGuid(), personId: quin.id },
        ]),
      ),
  ],
  ['postponed participations', () => hasPostponedPosts(workerDb, 1)],
  [
    'a like is received',
    () =>
      receiveBatch(worker(), [publicMessage(quin, likeBy(quin, { guid: newGuid(), author: ann.address } as never))]),
  ],
])('%s: few rows are read of tables that have grown since the last analyze', async (_what, run) => {
  const { rows, pages } = await costOf(workerDb, run)

  expect(rows).toBeLessThan(MAX_ROWS)
  expect(pages).toBeLessThan(MAX_PAGES)
})

it.each<readonly [string, () => Promise<unknown>]>([
  ['pods with a lost job', () => findOverduePods(workerDb, 100)],
  ['deliveries to sleeping pods', () => giveUpDeliveries(workerDb, 1_000)],
  ['pods to check', () => findPodsToCheck(workerDb, { checkEveryHours: 24, recheckMinutes: 30, checksPerRun: 60 })],
  ['bounds of waiting messages', () => deleteMessagesBeyondLimits(worker())],
  ['hosts with lost lookups', () => findHostsWithLostLookups(workerDb, 100)],
  ['overdue outbox rows', () => within((transaction) => findOverdueRows(transaction, ['relay'], 100))],
])('%s: each row of a table is read at most twice', async (_what, run) => {
  const { rows } = await costOf(workerDb, run)

  expect(rows).toBeLessThan(3 * MANY)
})

const streams: readonly Stream[] = ['main', 'all aspects', 'activity', 'mentions', 'tags', 'liked', 'commented']
it.each<readonly [string, () => Promise<unknown>]>([
  ['notifications', () => listNotificationsOfUser(webDb, ann.userId, { limit: 15 })],
  ['conversations', () => listConversationsOfPerson(webDb, ann.id, { limit: 15 })],
  [
    'posts of a person',
    () => listPostsOfPerson(webDb, reader(), { authorGuid: ann.guid, visibility: 'readable', page: { limit: 15 } }),
  ],
  ['comments', () => listCommentsOfPost(webDb, reader(), { postGuid, visibility: 'readable', page: { limit: 15 } })],
  ['a post', () => findListedPost(webDb, reader(), { guid: postGuid, visibility: 'readable' })],
  ['whether a post is visible', () => findReadablePost(webDb, reader(), { postGuid })],
  ['a public post', () => findFetchableEntity(webDb, 'post', postGuid)],
  ['a public comment', () => findFetchableEntity(webDb, 'comment', hashOf('c17'))],
  ['a person', () => findPersonWithRelationship(webDb, reader(), quin.guid)],
  ['likes of a post', () => listReactions(webDb, reader(), { kind: 'likes-of-post', id: 1 }, { offset: 0, limit: 15 })],
  [
    'photos of a person',
    () => listPhotosOfPerson(webDb, reader(), { authorGuid: quin.guid, visibility: 'readable', page: { limit: 15 } }),
  ],
  ['a conversation', () => findListedConversation(webDb, ann.id, hashOf('v17'))],
  [
    'messages',
    () => listMessagesOfConversation(webDb, ann.id, { conversationGuid: hashOf('v17'), offset: 0, limit: 15 }),
  ],
  ...streams.map((stream): [string, () => Promise<unknown>] => [
    `the stream ${stream}`,
    () => listStreamPosts(webDb, reader(), { stream, visibility: 'readable', page: { limit: 15 } }),
  ]),
])('%s: few rows are read for lists that have grown since the last analyze', async (_what, run) => {
  const { rows, pages } = await costOf(webDb, run)

  expect(rows).toBeLessThan(MAX_ROWS)
  expect(pages).toBeLessThan(MAX_PAGES)
})

it('tags: only own posts are read, of tables that have grown since the last analyze', async () => {
  const { rows } = await costOf(webDb, () => listTagNames(webDb, reader(), 'tea1', { offset: 0, limit: 15 }))

  expect(rows).toBeLessThan(MANY + MAX_ROWS)
})

function reader() {
  return { userId: ann.userId, personId: ann.id }
}
