import type { Knex } from 'knex'
import pg from 'pg'
import { afterAll, beforeAll, expect, it, vi } from 'vitest'
import { listUndecidedSignUps } from '../../src/persistence/accounts/pending-sign-ups.js'
import { openDatabase } from '../../src/persistence/database/database.js'
import { WEB_DATABASE_LIMITS } from '../../src/persistence/database/limits.js'
import { listActions } from '../../src/persistence/moderation/actions.js'
import { listAuditEntries } from '../../src/persistence/moderation/audit-log.js'
import { listCases } from '../../src/persistence/moderation/cases.js'
import { listClusters } from '../../src/persistence/moderation/clusters.js'
import { listPersonRecords } from '../../src/persistence/moderation/people-records.js'
import { findPeopleAgainstRules } from '../../src/persistence/moderation/pod-rule-restrictions.js'
import { countPublicContent } from '../../src/persistence/moderation/public-content-of-person.js'
import { listPodPage, listUndelivered, POD_SORTS } from '../../src/persistence/operations/pod-lists.js'
import { listKnownPods } from '../../src/persistence/outbound/known-pods.js'
import { openTestDatabase } from '../support/databases/test-database.js'

const MANY = 20_000
const PAGE = { limit: 50 }
/** A statement that inserts thousands of rows may take longer than one of a request. */
const SEED_LIMITS = { statementTimeoutMs: 60_000, queryTimeoutMs: 60_000 } as const

let database: Awaited<ReturnType<typeof openTestDatabase>>
let db: Knex
beforeAll(async () => {
  database = await openTestDatabase()
  db = database.db
  const seeding = openDatabase({ ...WEB_DATABASE_LIMITS, ...SEED_LIMITS, url: database.url, applicationName: 'test' })
  for (const statement of FILL) await seeding.raw(statement)
  await seeding.destroy()
})
afterAll(() => database.close())

/** 500 pods with people; one of ten pods has waiting and dead deliveries. Clusters of 50 items by 5 authors. */
const FILL = [
  `insert into pods (host) select 'p' || i || '.example' from generate_series(1, 500) as i`,
  `insert into people (guid, address, public_key, pod_id)
   select md5(i::text), 'p' || i || '@' || pods.host, 'none', pods.id
   from generate_series(1, ${MANY}) as i join pods on pods.id = 1 + i % 500`,
  `insert into people (guid, address, public_key) select md5('local' || i), 'l' || i || '@pod.example', 'none' from generate_series(1, 20) as i`,
  `insert into people (guid, address, public_key, pod_id)
   select md5('late' || i), 'late' || i || '@p1.example', 'none', 1 from generate_series(1, ${MANY}) as i`,
  `insert into outbound_messages (record, guid, verb, sender_id, public, entity)
   select 'post', md5(i::text), 'create', (select min(id) from people where pod_id is null), true, '<x/>' from generate_series(1, 200) as i`,
  `insert into deliveries (message_id, pod_id, priority, created_at)
   select messages.id, pods.id, messages.id % 3, now() - make_interval(mins => 1000 - messages.id::integer)
   from outbound_messages as messages, pods where pods.id % 10 = 1`,
  `insert into deliveries (message_id, pod_id, state, died_at)
   select messages.id, pods.id, 'dead', now() from outbound_messages as messages, pods where pods.id % 10 = 2 and messages.id <= 20`,
  `insert into clusters (key, kind, label) select 'key' || i, 'link', 'spam.example/' || i from generate_series(1, 200) as i`,
  `insert into cluster_items (cluster_id, type, content_id, author_id, at)
   select clusters.id, 'post', clusters.id * 100 + i, 1 + (clusters.id * 7 + i % 5) % ${MANY}, now()
   from clusters, generate_series(1, 50) as i`,
  'update clusters set item_count = 50, author_count = 5, pod_count = 5',
  `insert into audit_entries (id, at, actor, via, action, target, hash)
   select i, now(), jsonb_build_object('guid', md5('adm' || i % 5), 'name', 'adm' || i % 5, 'role', 'admin'), 'console', 'hide',
     jsonb_build_object('type', 'person', 'label', 'p' || i || '@p' || i % 500 || '.example'), '\\x00'
   from generate_series(1, ${MANY}) as i`,
  `insert into audit_entries (id, at, actor, via, action, target, hash)
   select ${MANY} + i, now(), jsonb_build_object('guid', md5('local1'), 'name', 'l1', 'role', 'admin'), 'console', 'hide',
     '{"type":"post","guid":null,"label":"a post"}', '\\x00'
   from generate_series(1, 3) as i`,
  `insert into moderation_actions (kind, target_type, target_guid, target_label, actor, reason, can_be_undone)
   select case when i <= 3 then 'lock' else 'hide' end, 'post', md5(i::text), 'a post',
     jsonb_build_object('guid', null, 'name', case when i <= 3 then 'l1' else 'adm' end, 'role', 'admin'), 'Spam', false
   from generate_series(1, ${MANY}) as i`,
  `insert into moderation_cases (target_type, target_guid, public, text, author_address, reporter_count)
   select 'post', md5(i::text), true, 'Buy', 'p' || i || '@' || case when i % 2 = 0 then 'often' else 'p' || i % 500 end || '.example', i % 7
   from generate_series(1, ${MANY}) as i`,
  'vacuum analyze',
]

it.each(POD_SORTS.filter((sort) => sort === 'host' || sort === 'failures'))(
  'pods by %s count what waits and what is dead without reading all deliveries',
  async (sort) => {
    const { result, scanned } = await scannedBy(() => listPodPage(db, { sort }, { offset: 0, limit: 50 }))

    expect(result).toHaveLength(50)
    expect(scanned).not.toContain('deliveries')
    expect(scanned).not.toContain('people')
  },
)

it('a pod is read without counting all of its people and deliveries', async () => {
  const hostPort = { host: 'p1.example', port: 443 }
  const { result, scanned } = await scannedBy(() => listKnownPods(db, { hostPort, maxCounted: 100 }))

  expect(result).toMatchObject([{ people: 101, waiting: 101, dead: 0 }])
  expect(await listKnownPods(db, { hostPort })).toMatchObject([{ people: MANY + MANY / 500, waiting: 200 }])
  expect(scanned).not.toContain('deliveries')
})

it('people of a blocked pod are found after a place without reading the people before it', async () => {
  await db('pods').where({ id: 1 }).update({ blockedAt: new Date() })
  const ids = await db('people').where({ podId: 1 }).orderBy('id').pluck('id')
  const cursor = { step: 0, podId: 1, personId: ids[10_000] }
  const { result, reads } = await scannedBy(() => findPeopleAgainstRules(db, cursor, 100))

  expect(result.people.map(({ id }) => id)).toEqual(ids.slice(10_001, 10_101))
  expect(reads).toMatch(/"Index Name":"people_of_pod"[^{}]*"Index Cond":"[^"]*id > CASE/)
  expect(reads).not.toContain('"Join Type":"Anti"')
  await db('pods').where({ id: 1 }).update({ blockedAt: null })
})

it('the public content of a person is counted up to a bound', async () => {
  const { result, reads } = await scannedBy(() => countPublicContent(db, 1))

  expect(result).toBe(0)
  expect(reads.match(/"Node Type":"Limit"/g)).toHaveLength(2)
})

it('the latest undelivered messages to a pod are read without its other deliveries', async () => {
  await db.raw(`update deliveries set state = 'dead', died_at = now() where pod_id = 1 and message_id <= 100`)
  const latest = await db('deliveries').where({ podId: 1 }).orderBy('id', 'desc').limit(20).select('createdAt')
  const { result, reads } = await scannedBy(() => listUndelivered(db, 1, 20))

  expect(result).toMatchObject(latest)
  expect(reads).toContain('deliveries_dead_of_pod')
  expect(reads).toContain('deliveries_line')
  await db('deliveries').where({ podId: 1 }).update({ state: 'waiting', diedAt: null })
})

it('a pod shows the time of its oldest waiting delivery of any priority, and its dead ones', async () => {
  const pods = await listPodPage(db, { q: 'p1.example', sort: 'host' }, { offset: 0, limit: 50 })
  const oldest = await db('deliveries').where({ podId: 1, state: 'waiting' }).orderBy('createdAt').first('createdAt')

  expect(pods.find(({ host }) => host === 'p1.example')).toMatchObject({
    waiting: 200,
    dead: 0,
    oldestWaiting: oldest.createdAt,
  })
  const [second] = await listPodPage(db, { q: 'p2.example', sort: 'host' }, { offset: 0, limit: 1 })
  expect(second).toMatchObject({ host: 'p2.example', waiting: 0, dead: 20, oldestWaiting: null })
})

it('clusters show the numbers of their items, authors and pods without reading them', async () => {
  const { result, scanned } = await scannedBy(() => listClusters(db, { states: ['open'] }, PAGE))

  expect(result.items).toHaveLength(50)
  expect(result.items[0]).toMatchObject({ itemCount: 50, authorCount: 5, podCount: 5 })
  expect(scanned).toEqual([])
})

it.each([
  ['local people', { isLocal: true }, 20],
  ['people of a pod', { domain: 'p77.example' }, 40],
  ['people of this pod by its host', { domain: 'pod.example' }, 20],
  ['people of an unknown pod', { domain: 'nothing.example' }, 0],
  ['locked people', { state: 'locked' }, 0],
  ['silenced people', { state: 'silenced' }, 0],
  ['closed accounts', { state: 'closed' }, 0],
] as const)('%s are listed without reading all people', async (_what, filter, count) => {
  const { result, scanned } = await scannedBy(() => listPersonRecords(db, filter, PAGE))

  expect(result.items).toHaveLength(count)
  expect(scanned).not.toContain('people')
})

it('sign-ups of one network are counted once for a page', async () => {
  await db.raw(`
    insert into pending_sign_ups (username, password_hash, language, reason, needs_confirmation, needs_approval, network, rules, expires_at)
    select 'user' || n, 'x', 'en', '', false, true, case when n > 1 then '192.0.2.0/24' end, '{}', now() + interval '1 day'
    from generate_series(1, 500) as n`)
  const { result, reads } = await scannedBy(() => listUndecidedSignUps(db, { limit: 100 }))
  const last = await listUndecidedSignUps(db, { before: 2, limit: 100 })

  expect(result.items.map(({ othersOfNetwork }) => othersOfNetwork)).toEqual(Array.from({ length: 100 }, () => 498))
  expect(last.items).toMatchObject([{ network: null, othersOfNetwork: 0 }])
  expect(reads).not.toContain('SubPlan')
})

it('entries about a domain are found without reading the audit log', async () => {
  const { result, scanned } = await scannedBy(() => listAuditEntries(db, { domain: 'p77.example' }, null, PAGE))

  expect(result.items).toHaveLength(40)
  expect(scanned).not.toContain('audit_entries')
})

it.each([
  ['a name without entries', 'nobody', 0],
  ['a guid without entries', 'b'.repeat(32), 0],
  ['an address without entries', 'p1@p2.example', 0],
  ['the address of a person with entries', 'l1@pod.example', 3],
] as const)('entries of an actor are found without reading the audit log: %s', async (_what, actor, count) => {
  const { result, scanned } = await scannedBy(() => listAuditEntries(db, { actor }, null, PAGE))

  expect(result.items).toHaveLength(count)
  expect(scanned).not.toContain('audit_entries')
})

it('entries of a time without entries are found without reading the audit log', async () => {
  const [since, until] = [new Date('2020-01-01'), new Date('2020-02-01')]
  const { result, scanned } = await scannedBy(() => listAuditEntries(db, { since, until }, null, PAGE))

  expect(result.items).toEqual([])
  expect(scanned).not.toContain('audit_entries')
})

it.each([
  ['an unknown actor', { actor: 'nobody' }, 0],
  ['an actor', { actor: 'l1' }, 3],
  ['an unknown kind', { kind: 'none' }, 0],
  ['a kind', { kind: 'lock' }, 3],
] as const)('actions are found without reading all of them: %s', async (_what, filter, count) => {
  const { result, scanned } = await scannedBy(() => listActions(db, filter, null, PAGE))

  expect(result.items).toHaveLength(count)
  expect(scanned).not.toContain('moderation_actions')
})

it.each([
  ['few', 'p77.example', 40],
  ['no', 'nothing.example', 0],
] as const)(
  '%s cases about people of a pod are found in their order without reading all cases',
  async (_what, domain, count) => {
    const { result, scanned } = await scannedBy(() => listCases(db, { domain }, null, { limit: 50 }))

    expect(result).toHaveLength(count)
    expect(result.map(({ reporterCount }) => reporterCount)).toEqual(
      result.map(({ reporterCount }) => reporterCount).toSorted((one, other) => other - one),
    )
    expect(scanned).not.toContain('moderation_cases')
  },
)

/** Runs a list and returns the large tables that its plan reads from one end: sequentially, or by an index without a condition. */
async function scannedBy<Result>(
  run: () => Promise<Result>,
): Promise<{ result: Result; scanned: readonly string[]; reads: string }> {
  const query = pg.Client.prototype.query
  const seen: { readonly text: string; readonly values: unknown[] }[] = []
  const spy = vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...rest: unknown[]) {
    const [statement, values] = rest
    const text = typeof statement === 'string' ? statement : String(Reflect.get(Object(statement), 'text'))
    const given = Reflect.get(Object(statement), 'values') ?? values
    if (/^\s*(select|with)/i.test(text)) seen.push({ text, values: Array.isArray(given) ? given : [] })
    return Reflect.apply(query, this, rest)
  })
  const result = await run().finally(() => spy.mockRestore())
  const client = new pg.Client(database.url)
  await client.connect()
  try {
    const scanned = new Set<string>()
    let reads = ''
    for (const { text, values } of seen) {
      const { rows } = await client.query(`explain (format json) ${text}`, values)
      collect(rows[0]['QUERY PLAN'][0].Plan, scanned)
      reads += JSON.stringify(rows)
    }
    expect(seen.length).toBeGreaterThan(0)
    return { result, scanned: [...scanned].toSorted(), reads }
  } finally {
    await client.end()
  }
}

const LARGE = ['people', 'deliveries', 'cluster_items', 'audit_entries', 'moderation_actions', 'moderation_cases']

interface Plan {
  readonly 'Node Type': string
  readonly 'Relation Name'?: string
  readonly 'Index Name'?: string
  readonly 'Index Cond'?: string
  readonly Plans?: readonly Plan[]
}

/** Partial indexes that have only a few of the rows. */
const SMALL_INDEXES = ['people_local', 'people_restricted', 'people_closed']

function collect(plan: Plan, scanned: Set<string>): void {
  const { 'Relation Name': table = '', 'Index Name': index = '', 'Index Cond': condition } = plan
  const isWhole = plan['Node Type'] === 'Seq Scan' || (table !== '' && index !== '' && condition === undefined)
  if (LARGE.includes(table) && isWhole && !SMALL_INDEXES.includes(index)) scanned.add(table)
  for (const each of plan.Plans ?? []) collect(each, scanned)
}
