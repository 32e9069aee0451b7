import type { Knex } from 'knex'
import { enqueueJobs, newDispatchJob } from '../../jobs/outbox/enqueue-jobs.js'
import { stopReceiving, stopSharing } from '../../persistence/contacts/contact-changes.js'
import { listBlocksOfUser } from '../../persistence/contacts/list-blocks.js'
import type { ListedPerson } from '../../persistence/contacts/list-contacts.js'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { Block } from '../../persistence/models/contact.js'
import { Notification, NotificationActor } from '../../persistence/models/notification.js'
import { Person } from '../../persistence/models/person.js'
import { User } from '../../persistence/models/user.js'
import type { OffsetPage, Page } from '../../persistence/sql/keyset-page.js'
import type { Services } from '../../services/services.js'
import type { Viewer } from '../accounts/viewers.js'
import { Refusal } from '../refusals.js'

/** Lists the people whom the viewer blocks, the newest block first. */
export async function listBlocks(
  services: Pick<Services, 'db'>,
  viewer: Viewer,
  page: OffsetPage,
): Promise<Page<ListedPerson>> {
  return listBlocksOfUser(services.db, viewer.userId, page)
}

/** Blocks a person, ends sharing in both directions, and marks unread notifications as read that only this person caused. */
export async function blockForUser(services: Services, viewer: Viewer, personGuid: string): Promise<void> {
  await inRequestTransaction(services, async (transaction) => {
    const person = await getPerson(transaction, personGuid)
    if (person.id === viewer.personId) throw new Refusal('own_person', 'You cannot block yourself.')
    const pair = { userId: viewer.userId, personId: person.id }
    await User.lock(transaction, viewer.userId, [person.id])
    const [added] = await transaction('blocks').insert(pair).onConflict().ignore().returning('personId')
    if (added === undefined) throw new Refusal('already_blocked', 'You already block this person.')

    await stopReceiving(transaction, [pair])
    await enqueueBlockChange(services, transaction, { viewer, person, isBlocking: true })
    await markNotificationsRead(transaction, pair)
  })
}

/** Unblocks a person. Sharing that the block ended is not restored. */
export async function unblockForUser(services: Services, viewer: Viewer, personGuid: string): Promise<void> {
  await inRequestTransaction(services, async (transaction) => {
    const person = await getPerson(transaction, personGuid)
    const deletedCount = await Block.query(transaction).deleteById([viewer.userId, person.id])
    if (deletedCount === 0) throw new Refusal('not_blocked', 'You do not block this person.')
    await enqueueBlockChange(services, transaction, { viewer, person, isBlocking: false })
  })
}

async function getPerson(transaction: Knex.Transaction, guid: string): Promise<Person> {
  const person = await Person.query(transaction).findOne({ guid })
  if (person === undefined)
    throw new Refusal('person_not_found', 'This person does not exist, or you may not see them.')
  return person
}

interface BlockChange {
  readonly viewer: Viewer
  readonly person: Person
  readonly isBlocking: boolean
}

/** Sends the block to the pod of a remote person. For a local person, only the viewer's sharing ends. */
async function enqueueBlockChange(
  services: Services,
  transaction: Knex.Transaction,
  { viewer, person, isBlocking }: BlockChange,
): Promise<void> {
  const { userId, personId: ownPersonId } = viewer
  const { id: personId, podId } = person
  if (podId !== null) {
    const record = { record: 'contact', userId, personId, sharing: false, blocking: isBlocking } as const
    await enqueueJobs(services, transaction, [newDispatchJob(ownPersonId, record)])
    return
  }
  if (!isBlocking) return
  const user = await User.query(transaction).findOne({ personId })
  if (user !== undefined) await stopSharing(transaction, [{ userId: user.id, personId: ownPersonId }])
}

async function markNotificationsRead(
  transaction: Knex.Transaction,
  { userId, personId }: Pick<Block, 'userId' | 'personId'>,
): Promise<void> {
  const actors = () =>
    NotificationActor.query(transaction).whereColumn('notificationActors.notificationId', 'notifications.id')
  await Notification.query(transaction)
    .patch({ read: true, superseded: false })
    .where({ userId, read: false })
    .whereExists(actors().where({ personId }))
    .whereNotExists(actors().whereNot({ personId }))
  await Notification.resumeMerging(transaction, userId)
}
