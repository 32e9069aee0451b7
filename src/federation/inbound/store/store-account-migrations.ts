import type { Knex } from 'knex'
import { enqueueJobs, newDispatchJob } from '../../../jobs/outbox/outbox.js'
import { lockProfileOwners, replaceProfiles } from '../../../persistence/inbound/replace-profiles.js'
import { Person } from '../../../persistence/models/person.js'
import { User } from '../../../persistence/models/user.js'
import { emptyPeople } from '../../../persistence/people/empty-people.js'
import { migrationFrom, movePerson, movePhotos, newestIdentity } from '../../../persistence/people/move-person.js'
import type { Pod } from '../../../pod/pod.js'
import type { AccountMigrationEntity } from '../../../protocol/entities/people.js'
import { migrationOf } from '../../../protocol/signatures/migration-signature.js'
import type { Arrival, IgnoredMessage, RejectedMessage, StoredRecord, StoreResult } from '../batch.js'
import { isOnTheWeb } from './photo-facts.js'
import { arrivedProfile } from './received-profile.js'

/** One after the other: they are rare, and where one leads depends on those before it. */
export async function storeAccountMigrations(
  transaction: Knex.Transaction,
  arrivals: readonly Arrival<AccountMigrationEntity>[],
  now: Date,
  pod: Pod,
): Promise<StoreResult<AccountMigrationEntity>> {
  const records: StoredRecord<AccountMigrationEntity>[] = []
  const rejected: RejectedMessage[] = []
  const ignored: IgnoredMessage[] = []
  for (const arrival of arrivals) {
    const { message } = arrival
    const plan = await planOf(transaction, arrival.entity)
    if (plan.do === 'move') {
      await migrate(pod, transaction, arrival, plan, now)
      records.push({ id: plan.from.id, arrival })
    } else if (plan.do === 'refuse') {
      rejected.push({ message, arrival, fault: 'NotAllowed', reason: plan.reason })
    } else {
      ignored.push({ message, arrival, reason: plan.reason })
    }
  }
  return { records, rejected, ignored }
}

interface Move {
  readonly do: 'move'
  readonly from: Person
  /** As the migration says. */
  readonly to: Person
  /** Where those have moved since. */
  readonly newest: Person
}

type Plan = Move | { readonly do: 'nothing' | 'refuse'; readonly reason: string }

/** Both are held, so that two migrations of one person do not both find that there is none. */
async function planOf(transaction: Knex.Transaction, entity: AccountMigrationEntity): Promise<Plan> {
  const names = migrationOf(entity)
  const people = await Person.byAddresses(transaction, [names.from, names.to]).orderBy('id').forNoKeyUpdate()
  const from = people.find(({ address }) => address === names.from)
  const to = people.find(({ address }) => address === names.to)
  if (from === undefined || to === undefined) return { do: 'refuse', reason: 'one of the two is unknown here' }
  const before = await migrationFrom(transaction, from.id)
  if (before?.newPersonId === to.id) return { do: 'nothing', reason: `${names.from} has moved there already` }
  if (before !== undefined) return { do: 'refuse', reason: `${names.from} has moved to somebody else` }
  if (from.closedAt !== null) return { do: 'refuse', reason: `${names.from} has left without moving` }
  const newest = await Person.query(transaction)
    .findById(await newestIdentity(transaction, to.id))
    .throwIfNotFound()
  if (newest.id === from.id) return { do: 'refuse', reason: `${names.to} has moved to ${names.from}` }
  if (newest.closedAt !== null) return { do: 'refuse', reason: `${newest.address} has left` }
  return { do: 'move', from, to, newest }
}

async function migrate(
  pod: Pod,
  transaction: Knex.Transaction,
  arrival: Arrival<AccountMigrationEntity>,
  { from, to, newest }: Move,
  now: Date,
): Promise<void> {
  const { signature = '', remote_photo_path: path } = arrival.entity
  const remotePhotoPath = path !== undefined && isOnTheWeb(path) ? path.replace(/\/?$/, '/') : null
  await updateProfile(transaction, arrival, now)
  await transaction('accountMigrations').insert({
    oldPersonId: from.id,
    newPersonId: to.id,
    signature,
    remotePhotoPath,
  })
  if (remotePhotoPath !== null) await movePhotos(transaction, from.id, remotePhotoPath)
  await movePerson(transaction, { from: from.id, to: newest.id })
  await emptyPeople(transaction, [from.id], now)
  await User.query(transaction).patch({ lockedAt: now }).where({ personId: from.id }).whereNull('lockedAt')
  if (newest.podId !== null) await tellNewIdentity(pod, transaction, newest.id)
}

/** Of somebody who lives here, nobody else says what their profile is. */
async function updateProfile(
  transaction: Knex.Transaction,
  { entity: { profile }, message: { acceptedAt } }: Arrival<AccountMigrationEntity>,
  now: Date,
): Promise<void> {
  const [owner] = await lockProfileOwners(transaction, [profile.author])
  if (owner !== undefined) await replaceProfiles(transaction, [arrivedProfile(profile, owner, { acceptedAt, now })])
}

/** Where people have moved, nobody knows yet who shares with them. */
async function tellNewIdentity(pod: Pod, transaction: Knex.Transaction, personId: number): Promise<void> {
  const contacts: readonly { userId: number; receiving: boolean; ownPersonId: number }[] = await transaction('contacts')
    .join('users', 'users.id', 'contacts.userId')
    .where({ 'contacts.personId': personId, sharing: true })
    .orderBy('userId')
    .select('userId', 'receiving', 'users.personId as ownPersonId')
  await enqueueJobs(
    pod,
    transaction,
    contacts.map(({ userId, receiving, ownPersonId }) =>
      newDispatchJob(ownPersonId, { record: 'contact', userId, personId, sharing: receiving, blocking: false }),
    ),
  )
}
