import type { Knex } from 'knex'
import {
  findPeopleAgainstRules,
  type PersonAgainstRules,
  POD_RULES,
} from '../../../persistence/moderation/pod-rule-restrictions.js'
import { liftRestrictions, restrictPeople } from '../../../persistence/moderation/restrictions.js'
import type { Services } from '../../../services/services.js'
import { type BackgroundTaskHandlers, continueBackgroundTask } from '../../operations/background-tasks.js'
import { SYSTEM_ACTOR } from '../actor.js'
import { followUpRestrictions } from '../follow-up-restrictions.js'
import { MODERATION_LIMITS } from '../limits.js'

const KIND = 'pod_rules.restrict' as const

/** Brings the restrictions of people in line with the rules for their pods, in the background. */
export async function startRestricting(services: Pick<Services, 'jobs'>, transaction: Knex.Transaction): Promise<void> {
  const reason = 'The rules for pods have changed.'
  await continueBackgroundTask(services, transaction, SYSTEM_ACTOR, { kind: KIND, target: 'people', total: 0, reason })
}

/** Restricts people who were missed, for example because they were stored while a rule was made. */
export async function restrictMissedPeople(services: Pick<Services, 'db' | 'jobs'>): Promise<void> {
  if ((await findPeopleAgainstRules(services.db, 1)).length === 0) return
  await services.db.transaction((transaction) => startRestricting(services, transaction))
}

export const restrictTaskHandlers: Pick<BackgroundTaskHandlers, typeof KIND> = {
  [KIND]: {
    async runChunk(services, transaction) {
      const people = await findPeopleAgainstRules(transaction, MODERATION_LIMITS.peopleOfChunk)
      const idsOfKind = (kind: PersonAgainstRules['kind']) =>
        people.filter((person) => person.kind === kind).map(({ id }) => id)
      const changes = [
        await restrictPeople(transaction, POD_RULES, 'block', idsOfKind('block')),
        await restrictPeople(transaction, POD_RULES, 'silence', idsOfKind('silence')),
        await liftRestrictions(transaction, POD_RULES, idsOfKind(null)),
      ]
      for (const change of changes) await followUpRestrictions(services, transaction, change)
      return { done: people.length, skipped: 0 }
    },

    async complete() {
      // The change of the rule has its entry in the audit log.
    },
  },
}
