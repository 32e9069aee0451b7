import { Person } from '../../persistence/models/person.js'
import { countRowsOfPerson, deletePerson, type PersonRows } from '../../persistence/people/delete-person.js'
import type { Pod } from '../../pod/pod.js'
import { Refusal } from '../refusals.js'

export interface RemotePerson {
  readonly id: number
  readonly guid: string
  readonly address: string
  readonly rows: PersonRows
}

/** A person of another pod, with what forgetting them deletes. Throws a `Refusal` for unknown and for local people. */
export async function findRemotePerson({ db }: Pick<Pod, 'db'>, address: string): Promise<RemotePerson> {
  const person = await Person.byAddress(db, address)
  if (person === undefined) throw new Refusal('not_found', `No person with the address ${address} is known.`)
  if (person.podId === null) {
    throw new Refusal('forbidden', `${address} is a local person. Close the account instead: pod user close.`)
  }
  return { id: person.id, guid: person.guid, address, rows: await countRowsOfPerson(db, person.id) }
}

/** Deletes a person of another pod and all that came from them. Another discovery makes them known again, with a new key. */
export async function deleteRemotePerson({ db, now }: Pick<Pod, 'db' | 'now'>, { id }: RemotePerson): Promise<void> {
  await deletePerson(db, id, now())
}
