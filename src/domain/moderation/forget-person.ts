import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { Person } from '../../persistence/models/person.js'
import { countRowsOfPerson, deletePerson, type PersonRows } from '../../persistence/people/delete-person.js'
import type { Services } from '../../services/services.js'
import { Refusal } from '../refusals.js'
import { type Actor, requirePower } from './actor.js'
import { type ActionOptions, recordAction, requireReason } from './record-action.js'

export interface RemotePerson {
  readonly id: number
  readonly guid: string
  readonly address: string
  readonly rows: PersonRows
}

/** A person of another pod, and the rows that forgetting them deletes. Throws a `Refusal` for unknown and for local people. */
export async function getRemotePerson({ db }: Pick<Services, 'db'>, address: string): Promise<RemotePerson> {
  const person = await Person.byAddress(db, address)
  if (person === undefined) throw new Refusal('not_found', `No person with the address ${address} is known.`)
  if (person.podId === null) {
    throw new Refusal('forbidden', `${address} is a local person. Close the account instead: pod user close.`)
  }
  return { id: person.id, guid: person.guid, address, rows: await countRowsOfPerson(db, person.id) }
}

/**
 * Deletes a person of another pod and all that came from them. Another discovery makes them known again, with a new key. The action is
 * recorded first: the deletion takes several transactions.
 */
export async function deleteRemotePerson(
  services: Pick<Services, 'db' | 'requestContext' | 'log' | 'now'>,
  actor: Actor,
  { id, guid, address, rows }: RemotePerson,
  options: ActionOptions,
): Promise<void> {
  requirePower(actor, 'administration')
  const reason = requireReason(options)
  await inRequestTransaction(services, (transaction) =>
    recordAction(services, transaction, actor, {
      kind: 'forget',
      target: { type: 'person', guid, label: address },
      reason,
      undo: { possible: false },
      power: 'administration',
      before: { ...rows },
    }),
  )
  await deletePerson(services.db, id, services.now())
}
