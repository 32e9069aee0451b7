import type { Knex } from 'knex'
import {
  FIRST_RESTRICTING_CURSOR,
  findPeopleAgainstRules,
  hasPodRules,
  type PersonAgainstRules,
  POD_RULES,
  type RestrictingCursor,
} from '../../../persistence/moderation/pod-rule-restrictions.js'
import { liftRestrictions, restrictPeople } from '../../../persistence/moderation/restrictions.js'
import {
  changeTaskDetails,
  findLatestTask,
  resetTaskDetails,
} from '../../../persistence/operations/background-tasks.js'
import { DAY_MS } from '../../../protocol/durations.js'
import type { Services } from '../../../services/services.js'
import { type BackgroundTaskHandlers, continueBackgroundTask } from '../../operations/background-tasks.js'
import { SYSTEM_ACTOR } from '../actor.js'
import { followUpRestrictions } from '../follow-up-restrictions.js'
import { MODERATION_LIMITS } from '../limits.js'

const KIND = 'pod_rules.restrict' as const

const TARGET = 'people'

/** A person who is stored while a rule is made is found within this time. */
const RECENT_MS = 600_000

/**
 * Brings the restrictions of people in line with the rules for their pods, in the background. Work that has begun begins again: it may
 * have passed people whom the rules now concern.
 */
export async function startRestricting(services: Pick<Services, 'jobs'>, transaction: Knex.Transaction): Promise<void> {
  await resetTaskDetails(transaction, { kind: KIND, target: TARGET })
  await continueRestricting(services, transaction)
}

async function continueRestricting(services: Pick<Services, 'jobs'>, transaction: Knex.Transaction): Promise<void> {
  const reason = 'The rules for pods have changed.'
  await continueBackgroundTask(services, transaction, SYSTEM_ACTOR, { kind: KIND, target: TARGET, total: 0, reason })
}

/**
 * Restricts people who were missed: those who were stored while a rule was made, or whose work has failed. Looks for them for ten minutes
 * after the work; later only once a day, for people who were stored in other ways, as by a take-over.
 */
export async function restrictMissedPeople(services: Pick<Services, 'db' | 'jobs' | 'now'>): Promise<void> {
  const latest = await findLatestTask(services.db, [KIND], TARGET)
  if (latest?.state === 'queued' || latest?.state === 'running') {
    return services.db.transaction((transaction) => continueRestricting(services, transaction))
  }
  const age = latest === undefined ? DAY_MS : services.now().getTime() - latest.changedAt.getTime()
  if (latest?.state === 'done' && age > RECENT_MS && age < DAY_MS) return
  if (!(await hasPodRules(services.db))) return
  if (age < DAY_MS) {
    const { people } = await findPeopleAgainstRules(services.db, FIRST_RESTRICTING_CURSOR, 1)
    if (people.length === 0) return
  }
  await services.db.transaction((transaction) => startRestricting(services, transaction))
}

export const restrictTaskHandlers: Pick<BackgroundTaskHandlers, typeof KIND> = {
  [KIND]: {
    async runChunk(services, transaction, { id, details }) {
      const from = (details['cursor'] as RestrictingCursor | undefined) ?? FIRST_RESTRICTING_CURSOR
      const { people, cursor } = await findPeopleAgainstRules(transaction, from, MODERATION_LIMITS.peopleOfChunk)
      const idsOfKind = (kind: PersonAgainstRules['kind']) =>
        people.filter((person) => person.kind === kind).map(({ id }) => id)
      const changes = [
        await restrictPeople(transaction, POD_RULES, 'block', idsOfKind('block')),
        await restrictPeople(transaction, POD_RULES, 'silence', idsOfKind('silence')),
        await liftRestrictions(transaction, POD_RULES, idsOfKind(null)),
      ]
      await changeTaskDetails(transaction, id, { cursor })
      for (const change of changes) await followUpRestrictions(services, transaction, change)
      return { done: people.length, skipped: 0 }
    },

    async complete() {
      // The change of the rule has its entry in the audit log.
    },
  },
}
