import type { Knex } from 'knex'

/** The last id that the unfinished removal of a category has read. Undefined: it was finished less than a day ago. */
export async function findPruneStart(db: Knex, category: string): Promise<number | undefined> {
  const { rows } = await db.raw(
    `select last_id as "lastId", finished_at is not null as finished,
       finished_at > now() - interval '1 day' as recent
     from prune_progress where category = ?`,
    [category],
  )
  const [progress] = rows
  if (progress === undefined) return 0
  if (progress.recent) return undefined
  return progress.finished ? 0 : progress.lastId
}

/** Records how far the removal has come; null: it is finished. */
export async function recordPruneProgress(db: Knex, category: string, lastId: number | null): Promise<void> {
  await db.raw(
    `insert into prune_progress (category, last_id, finished_at)
     values (:category, coalesce(cast(:lastId as bigint), 0), case when cast(:lastId as bigint) is null then now() end)
     on conflict (category) do update set last_id = excluded.last_id, finished_at = excluded.finished_at`,
    { category, lastId },
  )
}
