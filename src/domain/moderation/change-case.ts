import type { Knex } from 'knex'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { appendAuditEntry } from '../../persistence/moderation/audit-log.js'
import {
  addCaseEvent,
  type CaseEventName,
  type CaseRow,
  type CaseState,
  findCase,
  listCaseActions,
  lockCase,
} from '../../persistence/moderation/cases.js'
import { type ClusterRow, changeClusterState, lockClusterOfCase } from '../../persistence/moderation/clusters.js'
import type { ModerationServices } from '../../services/services.js'
import { enqueueLiveEventsAndMails } from '../notifications/enqueue-live-events.js'
import { Refusal } from '../refusals.js'
import { type Actor, requirePower } from './actor.js'
import { type CaseWithActions, caseEntry, caseNotFound, excludedAuthorFor, releaseIdle } from './cases.js'
import { reopenClusterOfCase } from './clusters/reopen-cluster.js'
import { auditContext, readReason, requireReason } from './record-action.js'

interface CaseOptions {
  /** Decisions (resolve, dismiss, reopen) need one. */
  readonly reason?: string | undefined
}

export interface CaseChange {
  readonly changed: boolean
  readonly case: CaseWithActions
}

/** Takes an open case. With `force` it is taken from the moderator who has it. */
export function takeCase(
  services: ModerationServices,
  actor: Actor,
  id: number,
  { force = false, reason }: CaseOptions & { readonly force?: boolean | undefined },
): Promise<CaseChange> {
  return changeCase(services, actor, { id, reason }, async (caseRow, change) => {
    if (caseRow.state === 'taken' && caseRow.takenById === actor.userId) return false
    if (caseRow.state === 'taken' && !force) {
      const taker = caseRow.takenBy ?? 'A command or a deleted account' // no user is named in either
      throw new Refusal('taken_by_other', `${taker} has taken this case.`, {
        details: { taken_by: caseRow.takenBy },
      })
    }
    if (caseRow.state === 'taken') await change({ event: 'released' })
    else requireState(caseRow, ['open'])
    await change({ event: 'taken', state: 'taken' })
    return true
  })
}

export function releaseCase(
  services: ModerationServices,
  actor: Actor,
  id: number,
  { reason }: CaseOptions,
): Promise<CaseChange> {
  return changeCase(services, actor, { id, reason }, async (caseRow, change) => {
    requireState(caseRow, ['taken'])
    await change({ event: 'released', state: 'open' })
    return true
  })
}

/** Adds a note for other moderators. */
export function addCaseNote(
  services: ModerationServices,
  actor: Actor,
  id: number,
  { text }: { readonly text: string },
): Promise<CaseChange> {
  const note = requireReason({ reason: text })
  return changeCase(services, actor, { id }, async (_found, change) => {
    await change({ event: 'noted', text: note })
    return true
  })
}

/** Closes a case after an action, or `withoutAction`. */
export function resolveCase(
  services: ModerationServices,
  actor: Actor,
  id: number,
  { withoutAction = false, ...options }: CaseOptions & { readonly withoutAction?: boolean | undefined },
): Promise<CaseChange> {
  return changeCase(services, actor, { id, reason: options.reason }, async (caseRow, change, transaction) => {
    const reason = requireReason(options)
    requireState(caseRow, ['open', 'taken'])
    const action = withoutAction ? undefined : await transaction('moderation_actions').where({ caseId: id }).first('id')
    if (!withoutAction && action === undefined) {
      throw badTransition('No action is linked to this case. Take one, or set without_action.')
    }
    await change({ event: 'resolved', state: 'resolved', text: reason })
    return true
  })
}

/** Closes a case as unfounded. With `ignoreFurther`, later reports are only counted. */
export function dismissCase(
  services: ModerationServices,
  actor: Actor,
  id: number,
  { ignoreFurther = false, ...options }: CaseOptions & { readonly ignoreFurther?: boolean | undefined },
): Promise<CaseChange> {
  return changeCase(services, actor, { id, reason: options.reason }, async (caseRow, change) => {
    const reason = requireReason(options)
    requireState(caseRow, ['open', 'taken'])
    await change({ event: 'dismissed', state: 'dismissed', text: reason, ignoreFurther })
    return true
  })
}

export function reopenCase(
  services: ModerationServices,
  actor: Actor,
  id: number,
  options: CaseOptions,
): Promise<CaseChange> {
  return changeCase(services, actor, { id, ...options }, async (caseRow, change) => {
    const reason = requireReason(options)
    requireState(caseRow, ['resolved', 'dismissed'])
    await change({ event: 'reopened', state: 'open', text: reason, ignoreFurther: false })
    return true
  })
}

interface CaseStep {
  readonly event: CaseEventName
  readonly state?: CaseState
  readonly text?: string | undefined
  readonly ignoreFurther?: boolean
}

/** Locks a case, runs the steps, and records each of them in the history and in the audit log. */
async function changeCase(
  services: ModerationServices,
  actor: Actor,
  { id, reason: givenReason }: CaseOptions & { readonly id: number },
  run: (caseRow: CaseRow, change: (step: CaseStep) => Promise<void>, transaction: Knex.Transaction) => Promise<boolean>,
): Promise<CaseChange> {
  requirePower(actor, 'moderation')
  await releaseIdle(services)
  return inRequestTransaction(services, async (transaction) => {
    const hidden = excludedAuthorFor(actor)
    const cluster = await lockClusterOfCase(transaction, id)
    const moderationCase = await lockCase(transaction, id, hidden)
    if (moderationCase === undefined) throw caseNotFound()
    const reason = readReason({ reason: givenReason })
    const at = services.now()
    const steps: CaseStep[] = []
    const hasChanged = await run(
      moderationCase,
      async (step) => {
        if (cluster !== undefined) await changeClusterOfCase(transaction, cluster, step)
        await applyStep(transaction, { actor, id: moderationCase.id, at }, step)
        steps.push(step)
      },
      transaction,
    )
    if (hasChanged) await enqueueLiveEventsAndMails(services, transaction, { cases: [id] })
    for (const { event } of steps) {
      await appendAuditEntry(
        transaction,
        { ...auditContext(actor), ...caseEntry(moderationCase, `case.${event}`), reason },
        at,
      )
    }
    const after = (await findCase(transaction, id, hidden)) ?? moderationCase
    return { changed: hasChanged, case: { ...after, actions: await listCaseActions(transaction, [id]) } }
  })
}

/**
 * A decision about a case is one about its cluster too: a closed case has no open cluster, whose new content would be hidden, and an open
 * case has no closed cluster, which would refuse every action.
 */
async function changeClusterOfCase(
  transaction: Knex.Transaction,
  cluster: ClusterRow,
  { state, event }: CaseStep,
): Promise<void> {
  if (event === 'reopened') await reopenClusterOfCase(transaction, cluster)
  const isClosing = state === 'resolved' || state === 'dismissed'
  if (isClosing && cluster.state === 'open') await changeClusterState(transaction, cluster.id, 'dismissed')
}

async function applyStep(
  transaction: Knex.Transaction,
  { actor, id, at }: { readonly actor: Actor; readonly id: number; readonly at: Date },
  { event, state, text, ignoreFurther }: CaseStep,
): Promise<void> {
  const isTaken = state === 'taken'
  await transaction('moderation_cases')
    .where({ id })
    .update({
      changedAt: at,
      ...(state !== undefined && {
        state,
        takenById: isTaken ? actor.userId : null,
        takenAt: isTaken ? at : null,
        closedAt: state === 'resolved' || state === 'dismissed' ? at : null,
      }),
      ...(ignoreFurther !== undefined && { ignoreFurther }),
    })
  await addCaseEvent(transaction, { caseId: id, event, actorId: actor.userId, text, at })
}

function requireState({ state }: CaseRow, allowed: readonly CaseState[]): void {
  if (!allowed.includes(state)) throw badTransition(`The case is ${state}.`)
}

function badTransition(message: string): Refusal {
  return new Refusal('bad_transition', message)
}
