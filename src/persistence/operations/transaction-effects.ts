import type { Knex } from 'knex'
import { queryRow, queryRows } from '../database/database.js'

/** The rows of a table that a transaction has changed. */
interface TableChanges {
  readonly table: string
  readonly inserted: number
  readonly updated: number
  readonly deleted: number
}

/** The newest ids of tables whose rows are never updated. */
interface NewestIds {
  readonly actors: number
  readonly messages: number
  readonly outbox: number
}

/** The effects of a transaction, for operators. */
export interface TransactionEffects {
  readonly tables: readonly TableChanges[]
  /** Notifications of local users. */
  readonly notifications: readonly { readonly user: string; readonly type: string }[]
  /** Envelopes that would be sent, with their number of deliveries. */
  readonly outgoing: readonly {
    readonly record: string
    readonly guid: string
    readonly verb: string
    readonly deliveries: number
  }[]
  /** Enqueued jobs. */
  readonly jobs: readonly { readonly name: string; readonly data: unknown }[]
}

/** A point in a transaction from which its effects are listed. */
export interface EffectsMark {
  readonly tables: readonly TableChanges[]
  readonly newestIds: NewestIds
}

/** Marks the beginning of the effects to list. The transaction must be isolated from concurrent ones. */
export async function markEffects(transaction: Knex.Transaction): Promise<EffectsMark> {
  const tables = await queryRows<TableChanges>(transaction, TABLE_CHANGES_SQL)
  return { tables, newestIds: await queryRow<NewestIds>(transaction, NEWEST_IDS_SQL) }
}

export async function listEffectsSince(
  transaction: Knex.Transaction,
  { tables, newestIds }: EffectsMark,
): Promise<TransactionEffects> {
  const changes = await queryRows<TableChanges>(transaction, TABLE_CHANGES_SQL)
  const since = <Row extends object>(statement: string, id: number) => queryRows<Row>(transaction, statement, [id])
  return {
    tables: changes.flatMap((row) => {
      const before = tables.find(({ table }) => table === row.table)
      const inserted = row.inserted - (before?.inserted ?? 0)
      const updated = row.updated - (before?.updated ?? 0)
      const deleted = row.deleted - (before?.deleted ?? 0)
      return inserted + updated + deleted === 0 ? [] : [{ table: row.table, inserted, updated, deleted }]
    }),
    notifications: await since(NOTIFICATIONS_SINCE_SQL, newestIds.actors),
    outgoing: await since(OUTGOING_SINCE_SQL, newestIds.messages),
    jobs: await since(JOBS_SINCE_SQL, newestIds.outbox),
  }
}

/** PostgreSQL counts per connection, so the numbers may include earlier transactions. */
const TABLE_CHANGES_SQL = `
  select relname as table, n_tup_ins as inserted, n_tup_upd as updated, n_tup_del as deleted
  from pg_stat_xact_user_tables
  where schemaname = current_schema()
  order by relname`

const NEWEST_IDS_SQL = `
  select
    (select coalesce(max(id), 0) from notification_actors) as actors,
    (select coalesce(max(id), 0) from outbound_messages) as messages,
    (select coalesce(max(id), 0) from outbox) as outbox`

const NOTIFICATIONS_SINCE_SQL = `
  select users.username as user, notifications.type
  from notification_actors
  join notifications on notifications.id = notification_actors.notification_id
  join users on users.id = notifications.user_id
  where notification_actors.id > ?
  order by notification_actors.id`

const OUTGOING_SINCE_SQL = `
  select record, guid, verb, (select count(*) from deliveries where message_id = outbound_messages.id) as deliveries
  from outbound_messages where id > ? order by id`

const JOBS_SINCE_SQL = `select name, data from outbox where id > ? order by id`
