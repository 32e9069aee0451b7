import type { Knex } from 'knex'
import { enqueueJobs, newDispatchJob } from '../../jobs/outbox/outbox.js'
import { changeContentOfPerson, findContentChange } from '../../persistence/moderation/person-content.js'
import type { RestrictionChange } from '../../persistence/moderation/restrictions.js'
import type { Pod } from '../../pod/pod.js'
import { continueOperation, type OperationWorks } from '../operations/long-operations.js'
import { SYSTEM_ACTOR } from './actor.js'
import { MODERATION_LIMITS } from './limits.js'

const KIND = 'people.content' as const

/** Sends a contact message for each contact that is active again, and has the rest of the content hidden or shown in the background. */
export async function followUpRestrictions(
  pod: Pick<Pod, 'jobs'>,
  transaction: Knex.Transaction,
  { resumed, isContentLeft }: RestrictionChange,
): Promise<void> {
  await enqueueJobs(
    pod,
    transaction,
    resumed.map(({ userId, ownPersonId, personId }) =>
      newDispatchJob(ownPersonId, { record: 'contact', userId, personId, sharing: true, blocking: false }),
    ),
  )
  if (isContentLeft) await startChangingContent(pod, transaction)
}

/** Hides or shows content of which an operation has lost its job, or that was noted while it ended. */
export async function continueLostContentChange(pod: Pick<Pod, 'db' | 'jobs'>): Promise<void> {
  if ((await findContentChange(pod.db)) === undefined) return
  await pod.db.transaction((transaction) => startChangingContent(pod, transaction))
}

async function startChangingContent(pod: Pick<Pod, 'jobs'>, transaction: Knex.Transaction): Promise<void> {
  const reason = 'The block of a person has begun or ended.'
  await continueOperation(pod, transaction, SYSTEM_ACTOR, { kind: KIND, target: 'people', total: 0, reason })
}

/** Hides the content of blocked people in chunks, and shows it after the block. */
export const contentOperation: Pick<OperationWorks, typeof KIND> = {
  [KIND]: {
    async runChunk(_pod, transaction) {
      for (;;) {
        const personId = await findContentChange(transaction)
        if (personId === undefined) return { done: 0, skipped: 0 }
        const done = await changeContentOfPerson(transaction, personId, MODERATION_LIMITS.rowsOfChunk)
        if (done > 0) return { done, skipped: 0 }
      }
    },

    async complete() {
      // The action that has begun or ended the block has its entry in the audit log.
    },
  },
}
