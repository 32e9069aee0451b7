import { findNewestAddresses } from '../../../persistence/people/moved-people.js'
import type { Pod } from '../../../pod/pod.js'
import { isRelayable, type ReceivableEntity } from '../../../protocol/entities/registry.js'
import type { Arrival, ResolvedArrival } from '../batch.js'
import { findSigners } from '../find-signers.js'

/**
 * Relayables of people who have moved, from pods that have not heard of it: they were verified with the old key, and are stored as those
 * of the newest identity. The texts that were signed stay. What the old identity sends itself is ignored later.
 */
export async function followMovedAuthors(
  { db }: Pick<Pod, 'db'>,
  arrivals: readonly Arrival<ReceivableEntity>[],
): Promise<readonly Arrival<ReceivableEntity>[]> {
  const isLate = ({ entity, author, sender }: Arrival<ReceivableEntity>) =>
    isRelayable(entity) && author?.closed === true && sender !== entity.author
  const late = arrivals.filter(isLate)
  if (late.length === 0) return arrivals
  const newest = await findNewestAddresses(
    db,
    late.map(({ entity }) => entity.author),
  )
  const signers = new Map((await findSigners(db, [...newest.values()])).map((signer) => [signer.address, signer]))
  return arrivals.map((arrival) => {
    const author = isLate(arrival) ? signers.get(newest.get(arrival.entity.author) ?? '') : undefined
    if (author === undefined) return arrival
    return {
      ...arrival,
      author,
      movedFrom: arrival.entity.author,
      entity: { ...arrival.entity, author: author.address },
    }
  })
}

/** Reshares that name the author of their root by an address from which that author has moved. */
export async function followMovedRootAuthors(
  { db }: Pick<Pod, 'db'>,
  arrivals: readonly ResolvedArrival[],
): Promise<readonly ResolvedArrival[]> {
  const oldAuthorOf = ({ entity, references: { root } }: ResolvedArrival) =>
    entity.type === 'reshare' && root !== undefined && entity.root_author !== root.author
      ? entity.root_author
      : undefined
  const olds = arrivals.flatMap((arrival) => oldAuthorOf(arrival) ?? [])
  if (olds.length === 0) return arrivals
  const newest = await findNewestAddresses(db, olds)
  return arrivals.map((arrival) => {
    const { entity, references } = arrival
    const author = newest.get(oldAuthorOf(arrival) ?? '')
    if (entity.type !== 'reshare' || author === undefined || author !== references.root?.author) return arrival
    return { ...arrival, entity: { ...entity, root_author: author } }
  })
}
