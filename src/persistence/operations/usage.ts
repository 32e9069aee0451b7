import type { Knex } from 'knex'
import { queryPrepared } from '../database/database.js'

/** Usage of this pod by local users. */
export interface Usage {
  readonly users: number
  /** Signed in within 180 days, and within 30. */
  readonly activeHalfyear: number
  readonly activeMonth: number
  readonly posts: number
  readonly comments: number
}

/** Counts all rows of local users. Too slow for every request: callers cache it. */
export async function countUsage(db: Knex): Promise<Usage> {
  const [usage] = await queryPrepared<Usage>(db, 'usage', COUNT_SQL, [])
  if (usage === undefined) throw new Error('The statement that counts the usage returned no row.')
  return usage
}

const COUNT_SQL = `
  select
    count(*) as users,
    count(*) filter (where last_sign_in_at > now() - interval '180 days') as "activeHalfyear",
    count(*) filter (where last_sign_in_at > now() - interval '30 days') as "activeMonth",
    (
      select count(*) from posts join people on people.id = posts.author_id
      where people.pod_id is null and posts.type = 'StatusMessage'
    ) as posts,
    (
      select count(*) from comments join people on people.id = comments.author_id where people.pod_id is null
    ) as comments
  from users
  where closed_at is null`
