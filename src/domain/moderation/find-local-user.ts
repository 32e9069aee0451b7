import type { Knex } from 'knex'
import { Person } from '../../persistence/models/person.js'
import { User } from '../../persistence/models/user.js'
import { Refusal } from '../refusals.js'

export type LocalUser = User & { readonly person: Person }

/** Finds the account of a local person and locks it. Throws for unknown, remote and closed people. */
export async function lockLocalUser(transaction: Knex.Transaction, guid: string): Promise<LocalUser> {
  const person = await Person.query(transaction).findOne({ guid })
  if (person === undefined || person.closedAt !== null) {
    throw personNotFound()
  }
  if (person.podId !== null) throw new Refusal('not_local', `${person.address} has no account on this pod.`)
  const user = await User.query(transaction).findOne({ personId: person.id }).forUpdate()
  if (user === undefined || user.closedAt !== null) {
    throw personNotFound()
  }
  user.person = person
  return user as LocalUser
}

export function personNotFound(): Refusal {
  return new Refusal('person_not_found', 'There is no person with this guid, or the account is closed.')
}
