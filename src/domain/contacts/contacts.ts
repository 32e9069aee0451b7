import type { Knex } from 'knex'
import { enqueueJobs, type NewJob, newDispatchJob } from '../../jobs/outbox/enqueue-jobs.js'
import {
  followBack,
  type SharingPair,
  startReceiving,
  startSharing,
  stopReceiving,
  stopSharing,
} from '../../persistence/contacts/contact-changes.js'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { Aspect } from '../../persistence/models/aspect.js'
import { Block } from '../../persistence/models/contact.js'
import { Notification } from '../../persistence/models/notification.js'
import { Person } from '../../persistence/models/person.js'
import { User } from '../../persistence/models/user.js'
import { findNewestIdentity } from '../../persistence/people/move-person.js'
import type { Services } from '../../services/services.js'
import type { Viewer } from '../accounts/viewers.js'
import { enqueueLiveEventsAndMails } from '../notifications/enqueue-live-events.js'
import { notifyAbout } from '../notifications/notifications.js'
import { Refusal } from '../refusals.js'
import { getAspect } from './aspects.js'

export interface Membership {
  readonly aspectId: number
  readonly personGuid: string
}

/** Adds a person to an aspect of the viewer. The first aspect starts sharing with the person. */
export async function addToAspect(
  services: Services,
  viewer: Viewer,
  { aspectId, personGuid }: Membership,
): Promise<void> {
  await inRequestTransaction(services, async (transaction) => {
    const person = await lockViewerAndPerson(transaction, viewer, { aspectId, personGuid })
    await requireAddablePerson(transaction, viewer, person)

    const contact = await startReceiving(transaction, { userId: viewer.userId, personId: person.id })
    const insertedRows = await transaction('aspectMemberships')
      .insert({ aspectId, contactId: contact.id })
      .onConflict()
      .ignore()
      .returning('aspectId')
    if (insertedRows.length === 0) throw new Refusal('already_in_aspect', 'This person is in the aspect already.')
    if (contact.isNew) await deliverSharing(services, transaction, viewer, person)
    await Notification.query(transaction)
      .patch({ read: true, superseded: false })
      .where({ userId: viewer.userId, type: 'started_sharing', personId: person.id, read: false })
  })
}

/** Removes a person from an aspect of the viewer. The last aspect ends sharing with the person. */
export async function removeFromAspect(
  services: Services,
  viewer: Viewer,
  { aspectId, personGuid }: Membership,
): Promise<void> {
  await inRequestTransaction(services, async (transaction) => {
    const person = await lockViewerAndPerson(transaction, viewer, { aspectId, personGuid })
    const contact = await transaction('contacts')
      .where({ userId: viewer.userId, personId: person.id })
      .forUpdate()
      .first('id')
    const deletedCount =
      contact && (await transaction('aspectMemberships').where({ aspectId, contactId: contact.id }).delete())
    if (!deletedCount) throw new Refusal('not_in_aspect', 'This person is not in the aspect.')
    const otherMembership = await transaction('aspectMemberships').where({ contactId: contact.id }).first('aspectId')
    if (otherMembership === undefined) await endSharing(services, transaction, viewer, [person.id])
  })
}

/** Deletes an aspect of the viewer and ends sharing with members who are in no other aspect. */
export async function deleteAspect(services: Services, viewer: Viewer, aspectId: number): Promise<void> {
  await inRequestTransaction(services, async (transaction) => {
    const filedHere = transaction('aspectMemberships').where({ aspectId }).select('contactId')
    const people = await transaction('contacts')
      .where({ userId: viewer.userId })
      .whereIn('id', filedHere)
      .pluck('person_id')
    await User.lock(transaction, viewer.userId, people)
    await getAspect({ db: transaction }, viewer, aspectId)
    const members = await transaction('contacts')
      .whereIn('id', filedHere)
      .orderBy(['userId', 'personId'])
      .forUpdate()
      .select('id', 'personId')
    await Aspect.query(transaction).deleteById(aspectId)
    const otherMemberships: readonly { readonly contactId: number }[] = await transaction('aspectMemberships')
      .whereIn(
        'contactId',
        members.map(({ id }) => id),
      )
      .distinct('contactId')
    const contactsElsewhere = new Set(otherMemberships.map(({ contactId }) => contactId))
    const personIds = members.filter(({ id }) => !contactsElsewhere.has(id)).map(({ personId }) => personId)
    await endSharing(services, transaction, viewer, personIds)
  })
}

/**
 * Records that people share with local users, notifies the users, and follows back where a user has chosen so. Following back a
 * local person is recorded for that person in turn. Returns the pairs that are new.
 */
export async function beginSharing(
  services: Pick<Services, 'config' | 'jobs'>,
  transaction: Knex.Transaction,
  pairs: readonly SharingPair[],
  now: Date,
): Promise<readonly SharingPair[]> {
  const newPairs = await startSharing(transaction, pairs)
  // Followers of the old account of a user only confirm what the archive said: no news for the user.
  const unclaimedPairs = newPairs.filter(({ wasClaimed }) => !wasClaimed)
  await enqueueLiveEventsAndMails(services, transaction, {
    notifications: await notifyAbout(transaction, { sharing: unclaimedPairs }, now),
  })
  const followBacks = await followBack(transaction, unclaimedPairs)
  const remoteFollowBacks = followBacks.filter(({ theirUserId }) => theirUserId === null)
  await enqueueJobs(
    services,
    transaction,
    remoteFollowBacks.flatMap(({ userId, personId, ownPersonId }) =>
      newIntroductionJobs({ userId, personId: ownPersonId }, personId),
    ),
  )
  const mirroredPairs = followBacks.flatMap(({ theirUserId, ownPersonId }) =>
    theirUserId === null ? [] : [{ userId: theirUserId, personId: ownPersonId }],
  )
  if (mirroredPairs.length > 0) await beginSharing(services, transaction, mirroredPairs, now)
  return newPairs
}

/** Ends sharing with these people: a message is enqueued for remote people, and the contact of local people is changed directly. */
async function endSharing(
  services: Pick<Services, 'config' | 'jobs'>,
  transaction: Knex.Transaction,
  viewer: Viewer,
  personIds: readonly number[],
): Promise<void> {
  const { userId } = viewer
  const endedPairs = await stopReceiving(
    transaction,
    personIds.map((personId) => ({ userId, personId })),
  )
  const ids = endedPairs.map(({ personId }) => personId)
  const users = await User.query(transaction).select('id').whereIn('personId', ids).orderBy('id')
  await stopSharing(
    transaction,
    users.map(({ id }) => ({ userId: id, personId: viewer.personId })),
  )
  const remote = await Person.query(transaction).select('id').whereIn('id', ids).whereNotNull('podId').orderBy('id')
  await enqueueJobs(
    services,
    transaction,
    remote.map(({ id }) =>
      newDispatchJob(viewer.personId, { record: 'contact', userId, personId: id, sharing: false, blocking: false }),
    ),
  )
}

async function deliverSharing(
  services: Services,
  transaction: Knex.Transaction,
  viewer: Viewer,
  person: Person,
): Promise<void> {
  if (person.podId !== null) {
    await enqueueJobs(services, transaction, newIntroductionJobs(viewer, person.id))
    return
  }
  const user = await User.query(transaction).findOne({ personId: person.id }).throwIfNotFound()
  await beginSharing(services, transaction, [{ userId: user.id, personId: viewer.personId }], services.now())
}

/** Jobs that send a contact message and the profile of a local person to a remote person. */
function newIntroductionJobs({ userId, personId }: SharingPair, to: number): readonly NewJob[] {
  return [
    newDispatchJob(personId, { record: 'contact', userId, personId: to, sharing: true, blocking: false }),
    newDispatchJob(personId, { record: 'profile', personId, to }),
  ]
}

async function requireAddablePerson(transaction: Knex.Transaction, viewer: Viewer, person: Person): Promise<void> {
  if (person.id === viewer.personId) throw new Refusal('own_person', 'You cannot add yourself to an aspect.')
  if (person.restriction === 'block') throw personNotFound()
  if (person.closedAt !== null) throw new Refusal('account_closed', 'The account of this person is closed.')
  const block = await Block.query(transaction).findById([viewer.userId, person.id])
  if (block !== undefined) throw new Refusal('person_blocked', 'You block this person. Unblock the person first.')
}

/** Locks the viewer and, if local, the other user, so that neither side changes the relation or the aspects in the meantime. */
async function lockViewerAndPerson(
  transaction: Knex.Transaction,
  viewer: Viewer,
  { aspectId, personGuid }: Membership,
): Promise<Person> {
  const person = await findByAnyGuid(transaction, personGuid)
  await User.lock(transaction, viewer.userId, person ? [person.id] : [])
  await getAspect({ db: transaction }, viewer, aspectId)
  if (person === undefined) throw personNotFound()
  return person
}

/** The person with this guid; if the person has moved, the newest identity. Clients may still have the old guid. */
async function findByAnyGuid(transaction: Knex.Transaction, guid: string): Promise<Person | undefined> {
  const person = await Person.query(transaction).findOne({ guid })
  if (person === undefined || person.closedAt === null) return person
  return Person.query(transaction).findById(await findNewestIdentity(transaction, person.id))
}

function personNotFound(): Refusal {
  return new Refusal('person_not_found', 'This person does not exist, or you may not see them.')
}
