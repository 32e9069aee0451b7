import type { Knex } from 'knex'
import { queryPrepared } from '../database/database.js'
import { opaqueParam } from '../sql/opaque-param.js'

/** An open account of a user. */
interface OpenAccount {
  readonly username: string
  readonly personId: number
  readonly guid: string
  readonly address: string
}

/** Returns the account with this name if it is open, else the oldest open account. Undefined: there is none. */
export async function findOpenAccountOrOldest(db: Knex, username: string): Promise<OpenAccount | undefined> {
  const [account] = await queryPrepared<OpenAccount>(db, 'open-account', OPEN_ACCOUNT_SQL, [username])
  return account
}

/** Two lookups by index: one sort by name and id would read all accounts. */
const OPEN_ACCOUNT_SQL = `
  select accounts.username, people.id as "personId", people.guid, people.address
  from (
    (
      select username, person_id, 1 as rank from users
      where username = ${opaqueParam('$1', 'text')} and closed_at is null and locked_at is null
    )
    union all
    (select username, person_id, 2 from users where closed_at is null and locked_at is null order by id limit 1)
  ) as accounts
  join people on people.id = accounts.person_id
  order by accounts.rank
  limit 1`
