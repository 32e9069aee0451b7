import type { Knex } from 'knex'
import { queryRow, queryRows } from '../../src/persistence/database/database.js'

interface ChangedTable {
  readonly table: string
  readonly inserted: number
  readonly updated: number
  readonly deleted: number
}

/** The newest ids of what is inserted only. */
interface NewestIds {
  readonly actors: number
  readonly messages: number
  readonly outbox: number
}

/** The effects of a transaction so far, in words for operators. */
export interface Effects {
  readonly tables: readonly ChangedTable[]
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

/**
 * Records the state of a transaction, and returns a function that lists its effects since then. The transaction must be isolated from
 * concurrent ones.
 */
export async function beginCounting(transaction: Knex.Transaction): Promise<() => Promise<Effects>> {
  const before = await changedRows(transaction)
  const last = await queryRow<NewestIds>(transaction, NEWEST_IDS_SQL)
  return async () => {
    const after = await changedRows(transaction)
    const tables = after.flatMap((row) => {
      const previous = before.find(({ table }) => table === row.table)
      const inserted = row.inserted - (previous?.inserted ?? 0)
      const updated = row.updated - (previous?.updated ?? 0)
      const deleted = row.deleted - (previous?.deleted ?? 0)
      return inserted + updated + deleted === 0 ? [] : [{ table: row.table, inserted, updated, deleted }]
    })
    const since = <Row extends object>(statement: string, id: number) => queryRows<Row>(transaction, statement, [id])
    return {
      tables,
      notifications: await since(NOTIFIED_SINCE_SQL, last.actors),
      outgoing: await since(OUTGOING_SINCE_SQL, last.messages),
      jobs: await since(JOBS_SINCE_SQL, last.outbox),
    }
  }
}

async function changedRows(transaction: Knex.Transaction): Promise<Effects['tables']> {
  return queryRows<ChangedTable>(transaction, CHANGED_ROWS_SQL)
}

/** Statistics are counted per connection, so they may include earlier transactions. */
const CHANGED_ROWS_SQL = `
  select relname as table, n_tup_ins as inserted, n_tup_upd as updated, n_tup_del as deleted
  from pg_stat_xact_user_tables
  where schemaname = current_schema()
  order by relname`

const NEWEST_IDS_SQL = `
  select
    (select coalesce(max(id), 0) from notification_actors) as actors,
    (select coalesce(max(id), 0) from outbound_messages) as messages,
    (select coalesce(max(id), 0) from outbox) as outbox`

const NOTIFIED_SINCE_SQL = `
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
