import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'

/** The last id that the unfinished removal of a category has read; 0: it begins. Undefined: it was finished less than a day ago. */
export async function findPruneStart(db: Knex, category: string): Promise<number | undefined> {
  const [progress] = await queryRows<{
    readonly lastId: number
    readonly isFinished: boolean
    readonly isRecent: boolean | null
  }>(
    db,
    `select last_id as "lastId", finished_at is not null as "isFinished",
       finished_at > now() - interval '1 day' as "isRecent"
     from prune_progress where category = ?`,
    [category],
  )
  if (progress === undefined) return 0
  if (progress.isRecent) return undefined
  return progress.isFinished ? 0 : progress.lastId
}

export interface PruneStep {
  readonly removed: number
  /** Rows older than the limit: removed ones, and those that stay for a reason. */
  readonly found: number
  /** How far the removal has come; null: it is finished. Undefined: a removal by command, which leaves the daily one where it is. */
  readonly lastId?: number | null
}

/** Records how far the removal has come, and adds to the totals of the metrics. */
export async function recordPruneStep(db: Knex, category: string, { lastId, ...counts }: PruneStep): Promise<void> {
  const isDaily = lastId !== undefined
  await db.raw(
    `insert into prune_progress as progress (category, last_id, finished_at, removed_rows, found_rows, candidates)
     values (
       :category, coalesce(cast(:lastId as bigint), 0), case when :isFinished then now() end, :removed,
       case when :isDaily and not :isFinished then cast(:found as bigint) else 0 end,
       case when :isFinished then cast(:found as bigint) end
     )
     on conflict (category) do update set
       last_id = case when :isDaily then excluded.last_id else progress.last_id end,
       finished_at = case when :isDaily then excluded.finished_at else progress.finished_at end,
       removed_rows = progress.removed_rows + excluded.removed_rows,
       found_rows = case when :isFinished then 0 else progress.found_rows + excluded.found_rows end,
       candidates = case when :isFinished then progress.found_rows + excluded.candidates else progress.candidates end`,
    { category, lastId: lastId ?? null, isDaily, isFinished: lastId === null, ...counts },
  )
}
