import type { Knex } from 'knex'
import type { Person } from '../../persistence/models/person.js'
import { User } from '../../persistence/models/user.js'
import type { Pod } from '../../pod/pod.js'

/** Who speaks for the pod: the account that the settings name, else the first administrator, else the first account. */
export async function findPodminAccount({ config }: Pick<Pod, 'config'>, db: Knex): Promise<Person | undefined> {
  const user = await openAccounts(db)
    .orderByRaw(`username = ? desc, role is not distinct from 'admin' desc, id`, [config.podminAccount ?? ''])
    .withGraphFetched('person')
    .first()
  return user?.person
}

/** Databases in which somebody was found. That everybody leaves is rare enough to be found out later. */
const inhabited = new WeakSet<Knex>()

/** Whether there is, or was a while ago, somebody who could speak for the pod. */
export async function hasPodminAccount({ db }: Pick<Pod, 'db'>, transaction: Knex.Transaction): Promise<boolean> {
  if (inhabited.has(db)) return true
  const account = await openAccounts(transaction).select('id').first()
  if (account !== undefined) inhabited.add(db)
  return account !== undefined
}

function openAccounts(db: Knex) {
  return User.query(db).whereNull('closedAt').whereNull('lockedAt')
}
