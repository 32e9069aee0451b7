import type { Knex } from 'knex'
import type { Person } from '../../persistence/models/person.js'
import { User } from '../../persistence/models/user.js'
import type { Pod } from '../../pod/pod.js'

/** The account that signs messages of the pod: PODMIN_ACCOUNT, else the first administrator, else the first account. */
export async function findPodminAccount({ config }: Pick<Pod, 'config'>, db: Knex): Promise<Person | undefined> {
  const user = await openAccounts(db)
    .orderByRaw(`username = ? desc, role is not distinct from 'admin' desc, id`, [config.podminAccount ?? ''])
    .withGraphFetched('person')
    .first()
  return user?.person
}

/** Databases with an open account. If all accounts are closed later, the process notices it only after a restart. */
const databasesWithAccounts = new WeakSet<Knex>()

/** True if the pod has an open account, or had one since this process started. */
export async function hasPodminAccount({ db }: Pick<Pod, 'db'>, transaction: Knex.Transaction): Promise<boolean> {
  if (databasesWithAccounts.has(db)) return true
  const account = await openAccounts(transaction).select('id').first()
  if (account !== undefined) databasesWithAccounts.add(db)
  return account !== undefined
}

function openAccounts(db: Knex) {
  return User.query(db).whereNull('closedAt').whereNull('lockedAt')
}
