import type { Knex } from 'knex'
import { Person } from '../../persistence/models/person.js'
import { isRelayable, type ReceivableEntity } from '../../protocol/entities/registry.js'
import { endsSomething } from './authorise.js'
import type { Arrival, IgnoredMessage } from './batch.js'

/** Sorts out messages of people whose pod was blocked since their envelopes were opened, in the storing transaction. */
export async function ignoreNewlyBlocked(
  transaction: Knex.Transaction,
  ready: readonly Arrival<ReceivableEntity>[],
): Promise<{ readonly ready: readonly Arrival<ReceivableEntity>[]; readonly ignored: readonly IgnoredMessage[] }> {
  const addresses = new Set(ready.flatMap(({ signer, author }) => [signer.address, author?.address ?? signer.address]))
  const people = await Person.findSigners(transaction, [...addresses])
  const blocked = new Set(people.filter((person) => person.blocked).map(({ address }) => address))
  const isBlocked = ({ entity, signer, author }: Arrival<ReceivableEntity>) =>
    !endsSomething(entity) &&
    (blocked.has(signer.address) || (isRelayable(entity) && author !== undefined && blocked.has(author.address)))
  return {
    ready: ready.filter((arrival) => !isBlocked(arrival)),
    ignored: ready.filter(isBlocked).map((arrival) => ({
      ...{ message: arrival.message, arrival },
      reason: `the pod of ${arrival.entity.author} or ${arrival.sender} is blocked`,
    })),
  }
}
