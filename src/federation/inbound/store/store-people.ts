import type { Knex } from 'knex'
import { beginSharing } from '../../../domain/contacts/contacts.js'
import { stopInactiveSharing, stopSharing } from '../../../persistence/contacts/contact-changes.js'
import { lockProfileOwners, replaceProfiles } from '../../../persistence/inbound/replace-profiles.js'
import { Person } from '../../../persistence/models/person.js'
import { emptyPeople } from '../../../persistence/people/empty-people.js'
import type { AccountDeletionEntity, ContactEntity, ProfileEntity } from '../../../protocol/entities/people.js'
import type { ReceivableEntity } from '../../../protocol/entities/registry.js'
import type { Services } from '../../../services/services.js'
import type { IgnoredMessage, StorableMessage, StoreResult } from '../batch.js'
import { toProfileValues } from './received-profile.js'

/** Each profile replaces the stored one of its author, unless that is newer. */
export async function storeProfiles(
  _services: unknown,
  transaction: Knex.Transaction,
  messages: readonly StorableMessage<ProfileEntity>[],
  now: Date,
): Promise<StoreResult<ProfileEntity>> {
  const owners = await lockProfileOwners(transaction, addressesOf(messages))
  const newest = owners.flatMap((owner) => {
    const profilesOfOwner = messages.filter(({ entity }) => entity.author === owner.address)
    const [first] = profilesOfOwner
      .map((message) => {
        const { acceptedAt } = message.inbound
        return { message, profile: toProfileValues(message.entity, owner, { acceptedAt, now }) }
      })
      .reverse() // messages of one job have the same time: the last one wins
      .sort((one, other) => newestFirst(one.profile, other.profile))
    return first === undefined ? [] : [first]
  })
  const changedPersonIds = new Set(
    await replaceProfiles(
      transaction,
      newest.map(({ profile }) => profile),
    ),
  )
  const records = newest
    .filter(({ profile }) => changedPersonIds.has(profile.personId))
    .map(({ message, profile }) => ({ id: profile.personId, message }))
  return { records, rejected: [], ignored: ignoreRest(messages, records, 'a newer profile is stored') }
}

type ProfileTimes = Pick<ReturnType<typeof toProfileValues>, 'editedAt' | 'acceptedAt'>

/** Sorts the newest first, as `replaceProfiles` does. */
function newestFirst(one: ProfileTimes, other: ProfileTimes): number {
  const editDifference = timeOf(other) - timeOf(one)
  return editDifference === 0 ? other.acceptedAt.getTime() - one.acceptedAt.getTime() : editDifference
}

function timeOf({ editedAt, acceptedAt }: ProfileTimes): number {
  return (editedAt ?? acceptedAt).getTime()
}

/** Starts and ends sharing. Of several contact entities by one person for one user the last one counts. */
export async function storeContacts(
  services: Services,
  transaction: Knex.Transaction,
  messages: readonly StorableMessage<ContactEntity>[],
  now: Date,
): Promise<StoreResult<ContactEntity>> {
  // Locked: closing an account either deletes these contacts too, or has happened before.
  const people = await Person.byAddresses(transaction, addressesOf(messages))
    .select('id', 'address')
    .whereNull('closedAt')
    .orderBy('id')
    .forKeyShare()
  const ids = new Map(people.map(({ id, address }) => [address, id]))
  const last = new Map<string, { message: StorableMessage<ContactEntity>; userId: number; personId: number }>()
  for (const message of messages) {
    const userId = message.recipient?.userId
    const personId = ids.get(message.entity.author)
    if (userId === undefined || personId === undefined) continue
    last.set(`${userId} ${personId}`, { message, userId, personId })
  }
  const changes = [...last.values()]
  const pairs = (isSharing: boolean) =>
    changes
      .filter(({ message }) => message.entity.sharing === isSharing)
      .map(({ userId, personId }) => ({ userId, personId }))

  await stopSharing(transaction, pairs(false))
  await stopInactiveSharing(transaction, pairs(false))
  const newPairs = await beginSharing(services, transaction, pairs(true), now)
  const records = newPairs.flatMap(({ userId, personId }) => {
    const message = last.get(`${userId} ${personId}`)?.message
    return message === undefined ? [] : [{ id: personId, message }]
  })
  return { records, rejected: [] }
}

/** Closes accounts and deletes their contents. */
export async function storeAccountDeletions(
  _services: unknown,
  transaction: Knex.Transaction,
  messages: readonly StorableMessage<AccountDeletionEntity>[],
  now: Date,
): Promise<StoreResult<AccountDeletionEntity>> {
  const people = await Person.byAddresses(transaction, addressesOf(messages)).whereNull('closedAt')
  await emptyPeople(
    transaction,
    people.map(({ id }) => id),
    now,
  )
  const records = people.flatMap(({ id, address }) => {
    const message = messages.find(({ entity }) => entity.author === address)
    return message === undefined ? [] : [{ id, message }]
  })
  return { records, rejected: [], ignored: ignoreRest(messages, records, 'the account is closed already') }
}

function addressesOf(messages: readonly { readonly entity: { readonly author: string } }[]): string[] {
  return [...new Set(messages.map(({ entity }) => entity.author))]
}

function ignoreRest<Entity extends ReceivableEntity>(
  messages: readonly StorableMessage<Entity>[],
  records: readonly { readonly message: StorableMessage<Entity> }[],
  reason: string,
): IgnoredMessage[] {
  const storedMessages = new Set(records.map(({ message }) => message))
  return messages
    .filter((message) => !storedMessages.has(message))
    .map((message) => ({ inbound: message.inbound, message, reason }))
}
