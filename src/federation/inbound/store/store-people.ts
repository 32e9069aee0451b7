import type { Knex } from 'knex'
import { beginSharing } from '../../../domain/contacts/contacts.js'
import { stopInactiveSharing, stopSharing } from '../../../persistence/contacts/contact-changes.js'
import { lockProfileOwners, replaceProfiles } from '../../../persistence/inbound/replace-profiles.js'
import { Person } from '../../../persistence/models/person.js'
import { emptyPeople } from '../../../persistence/people/empty-people.js'
import type { Pod } from '../../../pod/pod.js'
import type { AccountDeletionEntity, ContactEntity, ProfileEntity } from '../../../protocol/entities/people.js'
import type { ReceivableEntity } from '../../../protocol/entities/registry.js'
import type { Arrival, IgnoredMessage, StoreResult } from '../batch.js'
import { toProfileValues } from './received-profile.js'

/** Each profile replaces the stored one of its author, unless that is newer. */
export async function storeProfiles(
  transaction: Knex.Transaction,
  arrivals: readonly Arrival<ProfileEntity>[],
  now: Date,
): Promise<StoreResult<ProfileEntity>> {
  const owners = await lockProfileOwners(transaction, addressesOf(arrivals))
  const newest = owners.flatMap((owner) => {
    const ofOwner = arrivals.filter(({ entity }) => entity.author === owner.address)
    const [first] = ofOwner
      .map((arrival) => {
        const { acceptedAt } = arrival.message
        return { arrival, profile: toProfileValues(arrival.entity, owner, { acceptedAt, now }) }
      })
      .reverse() // messages of one job have the same time: the last one wins
      .sort((one, other) => newestFirst(one.profile, other.profile))
    return first === undefined ? [] : [first]
  })
  const changed = new Set(
    await replaceProfiles(
      transaction,
      newest.map(({ profile }) => profile),
    ),
  )
  const records = newest
    .filter(({ profile }) => changed.has(profile.personId))
    .map(({ arrival, profile }) => ({ id: profile.personId, arrival }))
  return { records, rejected: [], ignored: ignoreRest(arrivals, records, 'a newer profile is stored') }
}

type ProfileTimes = Pick<ReturnType<typeof toProfileValues>, 'editedAt' | 'acceptedAt'>

/** The same order as in `replaceProfiles`. */
function newestFirst(one: ProfileTimes, other: ProfileTimes): number {
  const edited = timeOf(other) - timeOf(one)
  return edited === 0 ? other.acceptedAt.getTime() - one.acceptedAt.getTime() : edited
}

function timeOf({ editedAt, acceptedAt }: ProfileTimes): number {
  return (editedAt ?? acceptedAt).getTime()
}

/** Starts and ends sharing. Of several contact entities by one person for one user the last one counts. */
export async function storeContacts(
  transaction: Knex.Transaction,
  arrivals: readonly Arrival<ContactEntity>[],
  now: Date,
  pod: Pod,
): Promise<StoreResult<ContactEntity>> {
  // Locked: closing an account either deletes these contacts too, or has happened before.
  const people = await Person.byAddresses(transaction, addressesOf(arrivals))
    .select('id', 'address')
    .whereNull('closedAt')
    .orderBy('id')
    .forKeyShare()
  const ids = new Map(people.map(({ id, address }) => [address, id]))
  const last = new Map<string, { arrival: Arrival<ContactEntity>; userId: number; personId: number }>()
  for (const arrival of arrivals) {
    const userId = arrival.recipient?.userId
    const personId = ids.get(arrival.entity.author)
    if (userId === undefined || personId === undefined) continue
    last.set(`${userId} ${personId}`, { arrival, userId, personId })
  }
  const changes = [...last.values()]
  const pairs = (isSharing: boolean) =>
    changes
      .filter(({ arrival }) => arrival.entity.sharing === isSharing)
      .map(({ userId, personId }) => ({ userId, personId }))

  await stopSharing(transaction, pairs(false))
  await stopInactiveSharing(transaction, pairs(false))
  const started = await beginSharing(pod, transaction, pairs(true), now)
  const records = started.flatMap(({ userId, personId }) => {
    const arrival = last.get(`${userId} ${personId}`)?.arrival
    return arrival === undefined ? [] : [{ id: personId, arrival }]
  })
  return { records, rejected: [] }
}

/** Closes accounts and deletes their contents. */
export async function storeAccountDeletions(
  transaction: Knex.Transaction,
  arrivals: readonly Arrival<AccountDeletionEntity>[],
  now: Date,
): Promise<StoreResult<AccountDeletionEntity>> {
  const people = await Person.byAddresses(transaction, addressesOf(arrivals)).whereNull('closedAt')
  await emptyPeople(
    transaction,
    people.map(({ id }) => id),
    now,
  )
  const records = people.flatMap(({ id, address }) => {
    const arrival = arrivals.find(({ entity }) => entity.author === address)
    return arrival === undefined ? [] : [{ id, arrival }]
  })
  return { records, rejected: [], ignored: ignoreRest(arrivals, records, 'the account is closed already') }
}

function addressesOf(arrivals: readonly { readonly entity: { readonly author: string } }[]): string[] {
  return [...new Set(arrivals.map(({ entity }) => entity.author))]
}

function ignoreRest<Entity extends ReceivableEntity>(
  arrivals: readonly Arrival<Entity>[],
  records: readonly { readonly arrival: Arrival<Entity> }[],
  reason: string,
): IgnoredMessage[] {
  const stored = new Set(records.map(({ arrival }) => arrival))
  return arrivals
    .filter((arrival) => !stored.has(arrival))
    .map((arrival) => ({ message: arrival.message, arrival, reason }))
}
