import type { Knex } from 'knex'
import { closeMovedPerson } from '../../../domain/accounts/closing/close-moved.js'
import { movePerson } from '../../../domain/people/move-person.js'
import { enqueueJobs, newDispatchJob } from '../../../jobs/outbox/enqueue-jobs.js'
import { proveMove } from '../../../persistence/archives/account-moves.js'
import { lockProfileOwners, replaceProfiles } from '../../../persistence/inbound/replace-profiles.js'
import { Person } from '../../../persistence/models/person.js'
import {
  findLatestPhotoPath,
  findMigration,
  findNewestIdentity,
  movePhotos,
} from '../../../persistence/people/move-person.js'
import { countMovesInARow } from '../../../persistence/people/moved-people.js'
import type { AccountMigrationEntity } from '../../../protocol/entities/people.js'
import { readMigration } from '../../../protocol/signatures/migration-signature.js'
import type { Services } from '../../../services/services.js'
import type { IgnoredMessage, RejectedMessage, StorableMessage, StoredRecord, StoreResult } from '../batch.js'
import { INBOUND_LIMITS } from '../limits.js'
import { isWebUrl } from './photo-values.js'
import { toProfileValues } from './received-profile.js'

/** Stores migrations one by one: they are rare, and the target of one depends on the migrations before it. */
export async function storeAccountMigrations(
  services: Services,
  transaction: Knex.Transaction,
  messages: readonly StorableMessage<AccountMigrationEntity>[],
  now: Date,
): Promise<StoreResult<AccountMigrationEntity>> {
  const records: StoredRecord<AccountMigrationEntity>[] = []
  const rejected: RejectedMessage[] = []
  const ignored: IgnoredMessage[] = []
  for (const message of messages) {
    const { inbound } = message
    const plan = await planMigration(transaction, message.entity)
    if (plan.do === 'move') {
      await applyMove(services, transaction, { message, ...plan }, now)
      records.push({ id: plan.from.id, message })
    } else if (plan.do === 'refuse') {
      rejected.push({ inbound, message, fault: 'NotAllowed', reason: plan.reason })
    } else {
      ignored.push({ inbound, message, reason: plan.reason })
    }
  }
  return { records, rejected, ignored }
}

interface Move {
  readonly do: 'move'
  readonly from: Person
  /** The new identity that the migration names. */
  readonly to: Person
  /** The identity to which `to` has moved since; `to` itself if it has not. */
  readonly newest: Person
}

type MigrationPlan = Move | { readonly do: 'nothing' | 'refuse'; readonly reason: string }

/** Locks both people, so that of two concurrent migrations of one person only the first is stored. */
async function planMigration(transaction: Knex.Transaction, entity: AccountMigrationEntity): Promise<MigrationPlan> {
  const addresses = readMigration(entity)
  const people = await Person.byAddresses(transaction, [addresses.from, addresses.to]).orderBy('id').forNoKeyUpdate()
  const from = people.find(({ address }) => address === addresses.from)
  const to = people.find(({ address }) => address === addresses.to)
  if (from === undefined || to === undefined) return { do: 'refuse', reason: 'one of the two accounts is unknown' }
  const before = await findMigration(transaction, from.id)
  if (before?.newPersonId === to.id)
    return { do: 'nothing', reason: `${addresses.from} has already moved to this account` }
  if (before !== undefined) return { do: 'refuse', reason: `${addresses.from} has moved to another account` }
  if (from.closedAt !== null) return { do: 'refuse', reason: `${addresses.from} is closed and has not moved` }
  const newest = await Person.query(transaction)
    .findById(await findNewestIdentity(transaction, to.id))
    .withGraphFetched('pod')
    .throwIfNotFound()
  if ((newest.pod?.blockedAt ?? null) !== null) {
    return { do: 'nothing', reason: `${newest.address} is blocked` }
  }
  if (newest.id === from.id) return { do: 'refuse', reason: `${addresses.to} has moved to ${addresses.from}` }
  if (newest.closedAt !== null) return { do: 'refuse', reason: `the account ${newest.address} is closed` }
  if ((await countMovesInARow(transaction, { from: from.id, to: to.id })) >= INBOUND_LIMITS.movesInARow) {
    return { do: 'refuse', reason: `${addresses.from} belongs to a chain of too many moves` }
  }
  return { do: 'move', from, to, newest }
}

async function applyMove(
  services: Services,
  transaction: Knex.Transaction,
  { message, from, to, newest }: Move & { readonly message: StorableMessage<AccountMigrationEntity> },
  now: Date,
): Promise<void> {
  const { inbound, entity } = message
  const { signature = '', remote_photo_path: path } = entity
  const remotePhotoPath = path !== undefined && isWebUrl(path) ? path.replace(/\/?$/, '/') : null
  await updateRemoteProfile(transaction, message, now)
  const ids = { oldPersonId: from.id, newPersonId: to.id }
  if (!(await proveMove(transaction, { ...ids, oldAddress: from.address }))) {
    const envelope = inbound.recipientGuid === undefined ? inbound.envelope : null
    await transaction('accountMigrations').insert({ ...ids, signature, remotePhotoPath, envelope })
  }
  if (remotePhotoPath !== null) {
    await movePhotos(transaction, from.id, (await findLatestPhotoPath(transaction, to.id)) ?? remotePhotoPath)
  }
  await movePerson(services, transaction, { from: from.id, to: newest.id })
  await closeMovedPerson(services, transaction, from, now)
  if (newest.podId !== null) await dispatchContacts(services, transaction, newest.id)
}

/** Only the profile of a remote person changes; `lockProfileOwners` skips local people. */
async function updateRemoteProfile(
  transaction: Knex.Transaction,
  { entity: { profile }, inbound: { acceptedAt } }: StorableMessage<AccountMigrationEntity>,
  now: Date,
): Promise<void> {
  const [owner] = await lockProfileOwners(transaction, [profile.author])
  if (owner !== undefined) await replaceProfiles(transaction, [toProfileValues(profile, owner, { acceptedAt, now })])
}

interface Contact {
  readonly userId: number
  readonly ownPersonId: number
  readonly receiving: boolean
  readonly blocking: boolean
}

/** Sends the contacts of local users to the new pod, which does not know yet who shares with the moved person. */
async function dispatchContacts(services: Services, transaction: Knex.Transaction, personId: number): Promise<void> {
  const contacts: readonly Contact[] = await transaction('contacts')
    .join('users', 'users.id', 'contacts.userId')
    .where({ 'contacts.personId': personId })
    .where((either) => either.where({ sharing: true }).orWhere({ receiving: true }))
    .orderBy('contacts.userId')
    .select('contacts.userId', 'receiving', 'users.personId as ownPersonId')
    .select(
      transaction.raw(
        'exists (select from blocks where blocks.user_id = contacts.user_id and blocks.person_id = contacts.person_id) as blocking',
      ),
    )
  await enqueueJobs(
    services,
    transaction,
    contacts.map(({ userId, receiving, ownPersonId, blocking }) =>
      newDispatchJob(ownPersonId, { record: 'contact', userId, personId, sharing: receiving, blocking }),
    ),
  )
}
