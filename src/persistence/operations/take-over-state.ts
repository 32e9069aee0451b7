import type { Knex } from 'knex'
import { queryRow } from '../database/database.js'
import { NOW_SQL } from '../sql/database-time.js'

/** State of a take-over. No web or worker process starts in `copying` and `built`. From `open` on nothing is deleted or built again. */
export type TakeOverState = 'copying' | 'built' | 'open' | 'finished'

export interface TakeOver {
  readonly state: TakeOverState
  /** The step that is running. */
  readonly step: string | null
  readonly sealedPepper: Buffer | null
  readonly report: Readonly<Record<string, unknown>>
  readonly stepStartedAt: Date | null
  readonly createdAt: Date
  readonly changedAt: Date
}

/** Undefined: nothing was taken over, or the table does not exist yet. */
export async function findTakeOver(db: Knex): Promise<TakeOver | undefined> {
  const table = await queryRow<{ readonly exists: boolean }>(
    db,
    `select to_regclass('public.take_over') is not null as exists`,
  )
  return table.exists ? db('take_over').first() : undefined
}

/** Whether the pod was opened: from then on nothing is deleted or built again. */
export function wasPodOpened(takeOver: Pick<TakeOver, 'state'> | undefined): boolean {
  return takeOver?.state === 'open' || takeOver?.state === 'finished'
}

/** Begins or continues a take-over. `newestMigration` is that of the old database; its column is called `release`. */
export async function beginStep(
  db: Knex,
  {
    step,
    state,
    newestMigration,
  }: { readonly step: string; readonly state: TakeOverState; readonly newestMigration: string },
): Promise<void> {
  await db.raw(
    `insert into take_over (state, step, release, step_started_at) values (:state, :step, :newestMigration, ${NOW_SQL})
     on conflict (id) do update set
       state = excluded.state, step = excluded.step, release = excluded.release,
       step_started_at = excluded.step_started_at, changed_at = ${NOW_SQL}`,
    { step, state, newestMigration },
  )
}

export async function endStep(
  db: Knex,
  { state, report = {} }: { readonly state?: TakeOverState; readonly report?: Readonly<Record<string, unknown>> },
): Promise<void> {
  await db.raw(
    `update take_over set step = null, state = coalesce(:state, state), report = report || cast(:report as jsonb), changed_at = ${NOW_SQL}`,
    { state: state ?? null, report: JSON.stringify(report) },
  )
}

export async function saveSealedPepper(db: Knex, sealedPepper: Buffer): Promise<void> {
  await db('take_over').update({ sealedPepper })
}

interface OldPasswords {
  readonly count: number
  /** The first five user names. */
  readonly names: readonly string[]
}

/** Counts the open accounts whose password still has the hash (bcrypt) of the old pod. */
export async function countOldPasswords(db: Knex): Promise<OldPasswords> {
  return queryRow<OldPasswords>(db, OLD_PASSWORDS_SQL)
}

const OLD_PASSWORDS_SQL = `
  select count(*)::int as count, (array_agg(users.username order by users.username))[1:5] as names
  from user_secrets join users on users.id = user_secrets.user_id
  where password_hash like '$2%' and users.closed_at is null`

export async function deleteTakeOver(db: Knex): Promise<void> {
  await db('take_over').delete()
}
