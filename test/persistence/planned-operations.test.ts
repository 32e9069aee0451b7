import type { Knex } from 'knex'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { DeadLetterFilter } from '../../src/jobs/dead-letters/dead-letter.js'
import { listDeadLetterRows } from '../../src/jobs/dead-letters/dead-letter-rows.js'
import { openDatabase } from '../../src/persistence/database/database.js'
import { WEB_DATABASE_LIMITS } from '../../src/persistence/database/limits.js'
import { hideComments } from '../../src/persistence/moderation/hidden-content.js'
import { previewPods } from '../../src/persistence/moderation/pod-preview.js'
import { type DeadDeliveryFilter, listDeadDeliveries } from '../../src/persistence/outbound/dead-deliveries.js'
import { deleteBatch, emptyDeliveredPosts, expiredRowConditions } from '../../src/persistence/retention/expired-rows.js'
import { addUserRow } from '../support/databases/rows.js'
import { openTestDatabase } from '../support/databases/test-database.js'

const MANY = 6_000
const PODS = 300
/** One row of so many has the rare queue or fault. */
const RARE = 300
/** A statement that inserts thousands of rows may take longer than one of a request. */
const SEED_LIMITS = { statementTimeoutMs: 60_000, queryTimeoutMs: 60_000 } as const
const A_PAGE = { order: 'newest first', startAfter: { at: new Date('2100-01-01'), id: 0 }, limit: 51 } as const

let database: Awaited<ReturnType<typeof openTestDatabase>>
/** One connection, so that the statistics of the server have all of its reads. */
let db: Knex
beforeAll(async () => {
  database = await openTestDatabase()
  db = openDatabase({ ...WEB_DATABASE_LIMITS, ...SEED_LIMITS, url: database.url, pool: 1, applicationName: 'test' })
  const { personId } = await addUserRow({ db }, 'alice')
  for (const statement of seedOf(personId)) await db.raw(statement)
})
afterAll(async () => {
  await db.destroy()
  await database.close()
})

/** Dead letters of many pods in two queues with two faults, and people there. */
function seedOf(senderId: number): readonly string[] {
  const each = `generate_series(1, ${MANY}) as i`
  return [
    `insert into pods (host) select 'pod' || i || '.example' from generate_series(1, ${PODS}) as i`,
    'analyze pods',
    `insert into people (guid, address, public_key, pod_id)
     select md5('h' || i), 'p' || i || '@' || host, 'key', pods.id from ${each} join pods on host = 'pod' || (i % ${PODS}) + 1 || '.example'`,
    `insert into outbox (queue, name, data, failed_at)
     select case when i % ${RARE} = 0 then 'relay' else 'fetch' end, 'fetch-entity',
       jsonb_build_object('from', 'quin@pod' || (i % ${PODS}) + 1 || '.example', 'fault', case when i % ${RARE} = 0 then 'Rare' else 'Often' end,
         'type', case when i % ${RARE} = 0 then 'rare' else 'post' end),
       now() - i * interval '1 second'
     from ${each}`,
    `insert into outbound_messages (record, guid, verb, sender_id, public, entity)
     select 'post', md5('m' || i), 'create', ${senderId}, true, '<x/>' from ${each}`,
    'analyze outbound_messages',
    `insert into deliveries (message_id, pod_id, state, last_fault, died_at)
     select messages.id, pods.id, 'dead', case when messages.id % ${RARE} = 0 then 'rare' else 'often' end, now() - messages.id * interval '1 second'
     from outbound_messages as messages join pods on host = 'pod' || (messages.id % ${PODS}) + 1 || '.example'`,
    'analyze',
  ]
}

async function countReads(): Promise<number> {
  await db.raw('select pg_stat_force_next_flush()')
  const { rows } = await db.raw(
    'select sum(seq_tup_read + coalesce(idx_tup_fetch, 0))::integer as rows from pg_stat_user_tables',
  )
  return rows[0].rows
}

const rowsOf = async (filter: DeadLetterFilter) => (await listDeadLetterRows(db, filter, A_PAGE)).length
const deliveriesOf = async (filter: DeadDeliveryFilter) => (await listDeadDeliveries(db, filter, A_PAGE)).length
const peopleAt = async (domain: string) => (await previewPods(db, { domain, subdomains: true, port: null })).people

it.each<[string, () => Promise<unknown>, number]>([
  ['dead jobs of a queue', () => rowsOf({ queue: 'relay' }), 20],
  ['dead jobs of a queue without any', () => rowsOf({ queue: 'photos' }), 0],
  ['dead jobs with a fault', () => rowsOf({ fault: 'Rare' }), 20],
  ['dead jobs about a type of entity', () => rowsOf({ entity: 'rare' }), 20],
  ['dead jobs about a type of entity without any', () => rowsOf({ entity: 'photo' }), 0],
  ['dead jobs about a pod', () => rowsOf({ pod: 'pod7.example' }), 20],
  ['dead jobs about an unknown pod', () => rowsOf({ pod: 'other.example' }), 0],
  ['dead deliveries to a pod', () => deliveriesOf({ pod: 'pod7.example' }), 20],
  ['dead deliveries to another port of a pod', () => deliveriesOf({ pod: 'pod7.example:8443' }), 0],
  ['dead deliveries with a fault', () => deliveriesOf({ fault: 'rare' }), 20],
  ['people at a domain', () => peopleAt('pod7.example'), 20],
  ['people at an unknown domain', () => peopleAt('od7.example'), 0],
])('%s are found without reading all rows', async (_what, find, found) => {
  const before = await countReads()
  const result = await find()
  const after = await countReads()

  expect(result).toBe(found)
  expect(after - before).toBeLessThan(MANY / 10)
})

it('the notifications about hidden comments are found without reading all of them', async () => {
  await db.raw(`
    insert into posts (guid, author_id, type, public, text)
      select md5('post' || i), people.id, 'StatusMessage', true, 'Hello' from generate_series(1, ${MANY}) as i, people where pod_id is null;
    insert into comments (guid, post_id, author_id, text) select md5('comment' || id), id, author_id, 'Well said' from posts;
    insert into notifications (guid, user_id, type, post_id)
      select md5('notification' || posts.id), users.id, 'commented_on_post', posts.id from posts, users;
    analyze`)
  const ids = await db('comments').orderBy('id').limit(3).pluck('id')
  const before = await countReads()
  await db.transaction((transaction) => hideComments(transaction, ids))
  const after = await countReads()

  expect(await db('hidden_notifications')).toHaveLength(3)
  expect(after - before).toBeLessThan(MANY / 10)
})

it('the prune of messages reads no others than those that it changes', async () => {
  const { id: senderId } = await db('people').whereNull('podId').first('id')
  // Emptied posts are kept for the report, and posts and comments of today are new.
  await db.raw(`
    insert into outbound_messages (record, guid, verb, sender_id, public, entity, created_at)
      select record, md5(record || age || entity || i), 'create', ${senderId}, true, entity, now() - make_interval(days => age)
      from (values ('post', 2, '', ${MANY}), ('comment', 0, '<x/>', ${MANY}), ('comment', 2, '<x/>', 3), ('post', 2, '<x/>', 5), ('post', 15, '', 7))
        as kinds (record, age, entity, count)
      cross join lateral generate_series(1, count) as i;
    analyze outbound_messages`)
  const days = {
    knownBrowsers: 1,
    quarantine: 1,
    mails: 1,
    mailFaults: 1,
    importItems: 1,
    claimedFollowers: 1,
    forwarded: 1,
  }
  const { outbound_messages: isExpired = '' } = expiredRowConditions({ ...days, deliveryReports: 14 })
  const before = await countReads()
  const emptied = await emptyDeliveredPosts(db, 1_000)
  const deleted = await deleteBatch(db, 'outbound_messages', isExpired, 1_000)
  const after = await countReads()

  expect([emptied, deleted]).toEqual([5, 10])
  expect(after - before).toBeLessThan(MANY / 10)
})
