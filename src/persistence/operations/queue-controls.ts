import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'

/** The requested state of a queue. */
export interface RequestedQueueState {
  readonly queue: string
  readonly state: 'running' | 'paused' | 'draining'
  readonly actor: string
  readonly reason: string
  readonly until: Date | null
  readonly changedAt: Date
}

export async function saveRequestedState(
  db: Knex,
  { queue, state, actor, reason, until }: Omit<RequestedQueueState, 'changedAt'>,
): Promise<void> {
  await db.raw(
    `insert into queue_controls (queue, state, actor, reason, until) values (?, ?, ?, ?, ?)
     on conflict (queue) do update set state = excluded.state, actor = excluded.actor, reason = excluded.reason,
       until = excluded.until, changed_at = excluded.changed_at`,
    [queue, state, actor, reason, until],
  )
}

/** Locks the requested state of a queue. Without a row the queue runs; an expired request counts as `running`. */
export async function lockRequestedState(
  transaction: Knex.Transaction,
  queue: string,
): Promise<Pick<RequestedQueueState, 'state' | 'until'>> {
  const [requested] = await queryRows<Pick<RequestedQueueState, 'state' | 'until'>>(
    transaction,
    `select case when until <= now() then 'running' else state end as state,
       case when until <= now() then null else until end as until
     from queue_controls where queue = ? for update`,
    [queue],
  )
  return requested ?? { state: 'running', until: null }
}

/** A request whose time is over counts as `running`. */
export async function listRequestedStates(db: Knex): Promise<readonly RequestedQueueState[]> {
  return queryRows<RequestedQueueState>(
    db,
    `select queue, case when until <= now() then 'running' else state end as state, actor, reason, until,
       changed_at as "changedAt"
     from queue_controls`,
  )
}
