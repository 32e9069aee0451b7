import type { Knex } from 'knex'
import { queryRow, queryRows } from '../database/database.js'
import { type BoundedCount, boundedCounts, countUpTo } from '../moderation/pod-preview.js'

/** People of the pod, and people with an address at its host. A block applies to both. */
const PEOPLE_OF_POD_SQL = `
  from people
  join pods on pods.id = ?
  where people.pod_id is not null and (
    people.pod_id = pods.id
    or split_part(people.address, '@', 2) = pods.host || case when pods.port = 443 then '' else ':' || pods.port end
  )`

export async function listPeopleOfPod(db: Knex, podId: number, limit: number): Promise<readonly number[]> {
  const sql = `select people.id ${PEOPLE_OF_POD_SQL} order by people.id limit ?`
  return (await queryRows<{ readonly id: number }>(db, sql, [podId, limit])).map(({ id }) => id)
}

export async function countPeopleOfPod(db: Knex, podId: number): Promise<number> {
  const row = await queryRow<{ readonly people: number }>(db, `select count(*) as people ${PEOPLE_OF_POD_SQL}`, [podId])
  return Number(row?.people ?? 0)
}

export interface PodRows {
  readonly people: BoundedCount
  readonly posts: BoundedCount
  readonly photos: BoundedCount
  readonly comments: BoundedCount
  readonly likes: BoundedCount
  readonly votes: BoundedCount
  readonly conversations: BoundedCount
  readonly messages: BoundedCount
  readonly contacts: BoundedCount
}

const countOf = (table: string, person = 'author_id') =>
  countUpTo(`select from persons join ${table} on ${table}.${person} = persons.id`)

const COUNT_ROWS_SQL = `
  with persons as materialized (select people.id ${PEOPLE_OF_POD_SQL})
  select
    ${countUpTo('select from persons')} as people,
    ${countOf('posts')} as posts,
    ${countOf('photos')} as photos,
    ${countOf('comments')} as comments,
    ${countOf('likes')} as likes,
    ${countOf('poll_participations')} as votes,
    ${countOf('conversations')} as conversations,
    ${countOf('messages')} as messages,
    ${countOf('contacts', 'person_id')} as contacts`

/** Counts the people of a pod and what is deleted with them, up to a bound. An unknown pod, null, has none. */
export async function countRowsOfPod(db: Knex, podId: number | null): Promise<PodRows> {
  return boundedCounts<PodRows>({ ...(await queryRow<Record<string, number>>(db, COUNT_ROWS_SQL, [podId])) })
}
