import type { Knex } from 'knex'

/** The requested state of a queue. */
export interface QueueWish {
  readonly queue: string
  readonly state: 'running' | 'paused' | 'draining'
  readonly actor: string
  readonly reason: string
  readonly until: Date | null
  readonly changedAt: Date
}

export async function saveQueueWish(
  db: Knex,
  { queue, state, actor, reason, until }: Omit<QueueWish, 'changedAt'>,
): Promise<void> {
  await db.raw(
    `insert into queue_controls (queue, state, actor, reason, until) values (?, ?, ?, ?, ?)
     on conflict (queue) do update set state = excluded.state, actor = excluded.actor, reason = excluded.reason,
       until = excluded.until, changed_at = excluded.changed_at`,
    [queue, state, actor, reason, until],
  )
}

/** Locks the requested state of a queue. Without a row the queue runs; an expired request counts as `running`. */
export async function lockQueueWish(
  transaction: Knex.Transaction,
  queue: string,
): Promise<Pick<QueueWish, 'state' | 'until'>> {
  const { rows } = await transaction.raw(
    `select case when until <= now() then 'running' else state end as state,
       case when until <= now() then null else until end as until
     from queue_controls where queue = ? for update`,
    [queue],
  )
  return rows[0] ?? { state: 'running', until: null }
}

/** A wish whose time is over counts as `running`. */
export async function listQueueWishes(db: Knex): Promise<readonly QueueWish[]> {
  const { rows } = await db.raw(
    `select queue, case when until <= now() then 'running' else state end as state, actor, reason, until,
       changed_at as "changedAt"
     from queue_controls`,
  )
  return rows
}
