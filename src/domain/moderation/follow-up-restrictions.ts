import type { Knex } from 'knex'
import { enqueueJobs, newDispatchJob } from '../../jobs/outbox/enqueue-jobs.js'
import { changeContentOfPerson, findContentChange } from '../../persistence/moderation/blocked-author-content.js'
import type { RestrictionChange } from '../../persistence/moderation/restrictions.js'
import type { Services } from '../../services/services.js'
import { type BackgroundTaskHandlers, continueBackgroundTask } from '../operations/background-tasks.js'
import { SYSTEM_ACTOR } from './actor.js'
import { MODERATION_LIMITS } from './limits.js'

const KIND = 'people.content' as const

/** Sends a contact message for each contact that is active again, and has the rest of the content hidden or shown in the background. */
export async function followUpRestrictions(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  { resumed, isContentLeft }: RestrictionChange,
): Promise<void> {
  await enqueueJobs(
    services,
    transaction,
    resumed.map(({ userId, ownPersonId, personId }) =>
      newDispatchJob(ownPersonId, { record: 'contact', userId, personId, sharing: true, blocking: false }),
    ),
  )
  if (isContentLeft) await startChangingContent(services, transaction)
}

/** Hides or shows content whose operation has lost its job, or that was recorded while the operation ended. */
export async function continueMissedContentChange(services: Pick<Services, 'db' | 'jobs'>): Promise<void> {
  if ((await findContentChange(services.db)) === undefined) return
  await services.db.transaction((transaction) => startChangingContent(services, transaction))
}

async function startChangingContent(services: Pick<Services, 'jobs'>, transaction: Knex.Transaction): Promise<void> {
  const reason = 'The block of a person has begun or ended.'
  await continueBackgroundTask(services, transaction, SYSTEM_ACTOR, { kind: KIND, target: 'people', total: 0, reason })
}

/** Hides the content of blocked people in chunks, and shows it after the block. */
export const contentChangeTaskHandlers: Pick<BackgroundTaskHandlers, typeof KIND> = {
  [KIND]: {
    async runChunk(_services, transaction) {
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
