import type { Knex } from 'knex'
import { queryRow } from '../database/database.js'
import { type BoundedCount, boundedCounts, countUpTo } from './pod-preview.js'

/** Counts for a preview, as the admin API shows them. */
export interface PersonRelations {
  readonly people: BoundedCount
  readonly local_followers: BoundedCount
  readonly contacts: BoundedCount
  readonly posts: BoundedCount
  readonly comments: BoundedCount
  readonly deliveries_waiting: BoundedCount
}

/** Each count reads a bounded number of rows. */
export async function countRelations(db: Knex, personIds: readonly number[]): Promise<PersonRelations> {
  const counts = await queryRow<Record<keyof PersonRelations, number>>(
    db,
    `select
       cardinality(ids) as people,
       ${countUpTo('select from contacts where person_id = any(ids) and receiving')} as local_followers,
       ${countUpTo('select from contacts where person_id = any(ids)')} as contacts,
       ${countUpTo('select from posts where author_id = any(ids)')} as posts,
       ${countUpTo('select from comments where author_id = any(ids)')} as comments,
       ${countUpTo(`select from deliveries where person_id = any(ids) and state = 'waiting'`)} as deliveries_waiting
     from (select cast(? as bigint[]) as ids) as input`,
    [[...personIds]],
  )
  return boundedCounts(counts)
}
