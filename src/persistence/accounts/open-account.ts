import type { Knex } from 'knex'
import { stateByOwner } from '../../concurrency/state-by-owner.js'
import { queryPrepared } from '../database/database.js'
import { User } from '../models/user.js'
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

/** Whether a database has had an open account. If all accounts are closed later, a process notices it only after a restart. */
const accountsByDatabase = stateByOwner<Knex, { hadOne: boolean }>()

/** True if the pod has an open account, or had one since this process started. */
export async function hasOpenAccount(db: Knex, transaction: Knex): Promise<boolean> {
  const accounts = accountsByDatabase(db, () => ({ hadOne: false }))
  if (accounts.hadOne) return true
  const account = await User.query(transaction).whereNull('closedAt').whereNull('lockedAt').select('id').first()
  accounts.hadOne = account !== undefined
  return accounts.hadOne
}
