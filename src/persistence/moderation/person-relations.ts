import type { Knex } from 'knex'

/** Counts for a preview, as the admin API shows them. */
export interface PersonRelations {
  readonly people: number
  readonly local_followers: number
  readonly contacts: number
  readonly posts: number
  readonly comments: number
  readonly deliveries_waiting: number
}

export async function countRelations(db: Knex, personIds: readonly number[]): Promise<PersonRelations> {
  const { rows } = await db.raw(
    `select
       cardinality(ids) as people,
       (select count(*) from contacts where person_id = any(ids) and receiving)::integer as local_followers,
       (select count(*) from contacts where person_id = any(ids))::integer as contacts,
       (select count(*) from posts where author_id = any(ids))::integer as posts,
       (select count(*) from comments where author_id = any(ids))::integer as comments,
       (select count(*) from deliveries where person_id = any(ids) and state = 'waiting')::integer as deliveries_waiting
     from (select cast(? as bigint[]) as ids) as given`,
    [[...personIds]],
  )
  return rows[0]
}
