import { faultOfArrival } from '../protocol/sender-rules.js'
import type { Arrival, Over, Sorted, Wrong } from './batch.js'
import type { Resolved } from './resolve-batch.js'
import type { StorableEntity } from './storable.js'

/** Decides on what the steps before have found, and on nothing else: who may say this, and whether it may still be said. */
export function authoriseBatch(resolved: readonly Resolved[]): Sorted<Arrival<StorableEntity>> {
  const ready: Arrival<StorableEntity>[] = []
  const wrong: Wrong[] = []
  const over: Over[] = []
  for (const arrival of resolved) {
    const { message } = arrival
    const end = endOf(arrival)
    const fault = end === undefined ? faultOf(arrival) : undefined
    if (end !== undefined) over.push({ message, arrival, reason: end })
    else if (fault !== undefined) wrong.push({ message, arrival, ...fault })
    else ready.push(arrival)
  }
  return { ready, wrong, over, waiting: [] }
}

/** Why nothing is done about it, whatever it is. */
function endOf({ entity, signer, deleted }: Resolved): string | undefined {
  if (signer.blocked) return `the pod of ${signer.address} is blocked`
  if (signer.closed) return `${signer.address} has left`
  // Known here it is a repeat, unknown here it was deleted: whoever has our answer of old could bring it back.
  if (signer.local) return `${entity.author} lives here`
  return deleted ? `${entity.guid} was taken back by its author` : undefined
}

function faultOf(arrival: Resolved): Pick<Wrong, 'fault' | 'reason'> | undefined {
  const { entity, sender, signature, surroundings, taken } = arrival
  const name = `the ${entity.type} ${entity.guid} by ${entity.author}`
  const fault = faultOfArrival({ entity, sender, signature }, surroundings)
  if (fault !== undefined) return { fault, reason: `${name} must not come from ${sender} in this way` }
  if (taken) return { fault: 'InvalidAuthor', reason: `${name} holds something of somebody else` }
  if (isEmpty(entity)) return { fault: 'ValidationError', reason: `${name} is empty` }
  return undefined
}

function isEmpty(entity: StorableEntity): boolean {
  return entity.type === 'status_message' && entity.text.trim() === '' && entity.photos.length === 0
}
