import type { Knex } from 'knex'
import { enqueueJobs, newDispatchJob } from '../../../jobs/outbox/enqueue-jobs.js'
import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import { Person } from '../../../persistence/models/person.js'
import { Tombstone } from '../../../persistence/models/tombstone.js'
import { setDeleter } from '../../../persistence/moderation/cases.js'
import { countRelations } from '../../../persistence/moderation/person-relations.js'
import { deleteContactsOfPerson, findContentToPurge } from '../../../persistence/moderation/public-content-of-person.js'
import { countRowsOfPerson, deletePersonWithoutRows } from '../../../persistence/people/delete-person.js'
import type { ModerationServices, Services } from '../../../services/services.js'
import {
  type BackgroundTask,
  type BackgroundTaskHandlers,
  startBackgroundTask,
} from '../../operations/background-tasks.js'
import { destroyWithCreations } from '../../posts/retract.js'
import { Refusal } from '../../refusals.js'
import { type Actor, requirePower } from '../actor.js'
import { personNotFound } from '../find-local-user.js'
import { type ActionOptions, type ActionOutcome, recordAction, requireReason } from '../record-action.js'

export interface PurgePersonOptions extends Omit<ActionOptions, 'until'> {
  /** The address. */
  readonly confirm?: string | undefined
}

/**
 * Ends all contacts with a blocked remote person and deletes their posts, comments, likes and votes in the background. Tombstones keep
 * posts and comments away. The person stays known, so that the block stays in force.
 */
export async function purgePerson(
  services: ModerationServices,
  actor: Actor,
  guid: string,
  { confirm, ...options }: PurgePersonOptions,
): Promise<ActionOutcome & { readonly task: BackgroundTask }> {
  requirePower(actor, 'administration')
  return inRequestTransaction(services, async (transaction) => {
    const person = await lockRemotePerson(transaction, guid)
    const reason = requireReason(options)
    if (person.restriction !== 'block') throw new Refusal('bad_transition', 'Block the person first.')
    if (confirm !== person.address) {
      const preview = await countRelations(transaction, [person.id])
      throw confirmationNeeded(person, preview)
    }
    await endContacts(services, transaction, person.id)
    const action = await recordAction(services, transaction, actor, {
      kind: 'purge',
      target: { type: 'person', guid, label: person.address },
      reason,
      caseId: options.caseId,
      undo: { possible: false },
      power: 'administration',
    })
    const work = { kind: KIND, target: guid, total: 0, reason }
    return { changed: true, action, task: await startBackgroundTask(services, transaction, actor, work) }
  })
}

/** Deletes a remote person whose content is purged. The next message or search discovers them again, without a block. */
export async function deletePurgedPerson(
  services: ModerationServices,
  actor: Actor,
  guid: string,
  { confirm, ...options }: PurgePersonOptions,
): Promise<ActionOutcome> {
  requirePower(actor, 'administration')
  return inRequestTransaction(services, async (transaction) => {
    const person = await lockRemotePerson(transaction, guid)
    const reason = requireReason(options)
    const [tombstones] = await transaction('tombstones').where({ deletedById: person.id }).count({ count: '*' })
    const rows = { ...(await countRowsOfPerson(transaction, person.id)), tombstones: Number(tombstones?.count ?? 0) }
    if (Object.values(rows).some((count) => count > 0)) {
      throw new Refusal('person_in_use', 'There are rows of this person. Purge them first; tombstones stay.', {
        details: { preview: rows },
      })
    }
    if (confirm !== person.address) throw confirmationNeeded(person, rows)
    await deletePersonWithoutRows(transaction, person.id, services.now())
    const action = await recordAction(services, transaction, actor, {
      kind: 'forget',
      target: { type: 'person', guid, label: person.address },
      reason,
      caseId: options.caseId,
      undo: { possible: false },
      power: 'administration',
    })
    return { changed: true, action }
  })
}

const KIND = 'person.purge' as const
const ROW_BATCH_SIZE = 200

/** Deletes the content of a person, which is invisible already. */
export const purgeTaskHandlers: Pick<BackgroundTaskHandlers, typeof KIND> = {
  [KIND]: {
    async runChunk(_services, transaction, { target }) {
      const person = await Person.query(transaction).findOne({ guid: target })
      if (person === undefined || person.restriction !== 'block') return { done: 0, skipped: 0 }
      const content = await findContentToPurge(transaction, person.id, ROW_BATCH_SIZE)
      if (content === undefined) return { done: 0, skipped: 0 }
      await Tombstone.insertPermanent(
        transaction,
        content.tombstones.map(({ type, guid }) => ({ type, guid, by: person.address })),
      )
      await setDeleter(transaction, 'purge')
      await destroyWithCreations(transaction, content.kind, content.ids)
      return { done: content.ids.length, skipped: 0 }
    },

    async complete() {
      // The action has its entry in the audit log.
    },
  },
}

async function lockRemotePerson(transaction: Knex.Transaction, guid: string): Promise<Person> {
  const person = await Person.query(transaction).findOne({ guid }).forNoKeyUpdate()
  if (person === undefined) throw personNotFound()
  if (person.podId === null) throw new Refusal('not_remote', 'The person has an account on this pod. Close it instead.')
  return person
}

/** Contacts of a blocked person are inactive: who shares with them is in the values before the block. */
async function endContacts(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  personId: number,
): Promise<void> {
  const endedContacts = await deleteContactsOfPerson(transaction, personId)
  await enqueueJobs(
    services,
    transaction,
    endedContacts.map(({ userId, ownPersonId }) =>
      newDispatchJob(ownPersonId, { record: 'contact', userId, personId, sharing: false, blocking: false }),
    ),
  )
}

function confirmationNeeded({ address }: Person, preview: object): Refusal {
  return new Refusal('confirmation_needed', `Set confirm to ${address} to delete permanently.`, {
    details: { preview },
  })
}
