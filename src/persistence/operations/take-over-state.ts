import type { Knex } from 'knex'

/** In `copying` and `built` no web or worker process starts. From `open` on nothing is deleted or built again. */
export type TakeOverState = 'copying' | 'built' | 'open' | 'finished'

export interface TakeOver {
  readonly state: TakeOverState
  /** The step that is running. */
  readonly step: string | null
  /** The newest migration of the old database. */
  readonly release: string
  readonly sealedPepper: Buffer | null
  readonly report: Readonly<Record<string, unknown>>
  readonly stepStartedAt: Date | null
  readonly createdAt: Date
  readonly changedAt: Date
}

/** Undefined: nothing was taken over, or the table does not exist yet. */
export async function findTakeOver(db: Knex): Promise<TakeOver | undefined> {
  const { rows } = await db.raw(`select to_regclass('public.take_over') is not null as exists`)
  return rows[0].exists ? db('take_over').first() : undefined
}

/** From then on nothing is deleted or built again. */
export function isOpened(takeOver: Pick<TakeOver, 'state'> | undefined): boolean {
  return takeOver?.state === 'open' || takeOver?.state === 'finished'
}

const now = `date_trunc('milliseconds', now())`

/** Begins or continues a take-over. */
export async function beginStep(
  db: Knex,
  { step, state, release }: { readonly step: string; readonly state: TakeOverState; readonly release: string },
): Promise<void> {
  await db.raw(
    `insert into take_over (state, step, release, step_started_at) values (:state, :step, :release, ${now})
     on conflict (id) do update set
       state = excluded.state, step = excluded.step, release = excluded.release,
       step_started_at = excluded.step_started_at, changed_at = ${now}`,
    { step, state, release },
  )
}

export async function endStep(
  db: Knex,
  { state, report = {} }: { readonly state?: TakeOverState; readonly report?: Readonly<Record<string, unknown>> },
): Promise<void> {
  await db.raw(
    `update take_over set step = null, state = coalesce(:state, state), report = report || cast(:report as jsonb), changed_at = ${now}`,
    { state: state ?? null, report: JSON.stringify(report) },
  )
}

export async function insertPepper(db: Knex, sealedPepper: Buffer): Promise<void> {
  await db('take_over').update({ sealedPepper })
}

export async function deleteTakeOver(db: Knex): Promise<void> {
  await db('take_over').delete()
}
