import type { Knex } from 'knex'
import { queryRow, queryRows } from '../database/database.js'

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
