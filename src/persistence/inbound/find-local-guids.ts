import type { Knex } from 'knex'
import { queryPrepared } from '../database/database.js'

/** Returns the guids that belong to local people, closed accounts included, and to the account of the pod. */
export async function findLocalGuids(db: Knex, guids: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await queryPrepared<{ readonly guid: string }>(db, 'local-guids', LOCAL_GUIDS_SQL, [[...guids]])
  return new Set(rows.map(({ guid }) => guid))
}

const LOCAL_GUIDS_SQL = `
  select guid from people where guid = any($1) and pod_id is null
  union all
  select guid from pod_account where guid = any($1)`
