import type { Knex } from 'knex'
import { Person, type SignerRow } from '../../persistence/models/person.js'
import { endsContentOrContact, isRelayable, type ReceivableEntity } from '../../protocol/entities/registry.js'
import type { Arrival, IgnoredMessage, RejectedMessage } from './batch.js'

interface SortedArrivals {
  readonly ready: readonly Arrival<ReceivableEntity>[]
  readonly ignored: readonly IgnoredMessage[]
  /** Interactions of blocked people, which are answered. */
  readonly rejected: readonly RejectedMessage[]
}

/** Sorts out messages of people who were blocked, or whose pod was, since their envelopes were opened, in the storing transaction. */
export async function ignoreNewlyBlocked(
  transaction: Knex.Transaction,
  arrivals: readonly Arrival<ReceivableEntity>[],
): Promise<SortedArrivals> {
  const addresses = arrivals.flatMap(({ signer, author }) => [signer.address, author?.address ?? signer.address])
  const people = await Person.findSigners(transaction, [...new Set(addresses)])
  const byAddress = new Map(people.map((person) => [person.address, person]))
  const ready: Arrival<ReceivableEntity>[] = []
  const ignored: IgnoredMessage[] = []
  const rejected: RejectedMessage[] = []
  for (const arrival of arrivals) {
    const { message, entity, sender } = arrival
    const end = endOf(arrival, byAddress)
    if (end === undefined) ready.push(arrival)
    else if (end === 'pod') {
      ignored.push({ message, arrival, reason: `the pod of ${entity.author} or ${sender} is blocked` })
    } else {
      const reason = `the author ${entity.author} is blocked`
      if (isRelayable(entity)) rejected.push({ message, arrival, fault: 'Moderated', reason })
      else ignored.push({ message, arrival, reason: `Moderated: ${reason}` })
    }
  }
  return { ready, ignored, rejected }
}

/** The author of the entity counts, and of an entity without a known author the signer. Undefined: neither is blocked. */
function endOf(
  { entity, signer, author }: Arrival<ReceivableEntity>,
  people: ReadonlyMap<string, SignerRow>,
): 'pod' | 'person' | undefined {
  if (endsContentOrContact(entity)) return undefined
  const [ofSigner, ofAuthor] = [people.get(signer.address), author && people.get(author.address)]
  if (ofSigner?.blocked || (isRelayable(entity) && ofAuthor?.blocked)) return 'pod'
  return (author === undefined ? ofSigner : ofAuthor)?.isPersonBlocked ? 'person' : undefined
}
