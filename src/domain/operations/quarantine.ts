import type { Knex } from 'knex'
import { runOrAddAfterCommit } from '../../jobs/outbox/run-or-add.js'
import {
  countQuarantined,
  deleteQuarantined,
  findQuarantined,
  findQuarantinedPayload,
  findQuarantineRange,
  listQuarantined,
  lockQuarantined,
  type QuarantinedMessage,
  type QuarantineFilter,
  type QuarantineRange,
  replayQuarantined,
} from '../../persistence/inbound/quarantine.js'
import { changeTaskDetails, listUnfinishedTasks } from '../../persistence/operations/background-tasks.js'
import type { IdPage, ListPage } from '../../persistence/sql/id-page.js'
import type { OperationsServices, Services } from '../../services/services.js'
import { type Actor, requirePower } from '../moderation/actor.js'
import { requireReason } from '../moderation/record-action.js'
import { Refusal } from '../refusals.js'
import {
  type BackgroundTask,
  type BackgroundTaskHandler,
  type BackgroundTaskHandlers,
  startBackgroundTask,
} from './background-tasks.js'
import { recordOperatorChange } from './record-operator-change.js'

export interface QuarantineChange extends QuarantineFilter {
  readonly reason?: string | undefined
  /** The number of chosen messages; needed to delete them. */
  readonly confirm?: string | undefined
}

/** Lists rejected messages without their payloads, latest first. */
export async function listQuarantine(
  { db }: Pick<Services, 'db'>,
  actor: Actor,
  filter: QuarantineFilter,
  page: IdPage,
): Promise<ListPage<QuarantinedMessage>> {
  requirePower(actor, 'administration')
  return listQuarantined(db, filter, page)
}

export async function readQuarantined(
  { db }: Pick<Services, 'db'>,
  actor: Actor,
  id: number,
): Promise<QuarantinedMessage> {
  requirePower(actor, 'administration')
  const message = await findQuarantined(db, id)
  if (message === undefined) throw notFound()
  return message
}

/** Returns the message as it was received; the audit log records the access. */
export async function readQuarantinedPayload(
  services: OperationsServices,
  actor: Actor,
  id: number,
  reason?: string,
): Promise<string> {
  requirePower(actor, 'administration')
  const payload = await findQuarantinedPayload(services.db, id)
  if (payload === undefined) throw notFound()
  await recordOperatorChange(services, actor, {
    action: 'quarantine.payload',
    target: { type: 'quarantine', label: String(id) },
    ...(reason !== undefined && { reason: requireReason({ reason }) }),
  })
  return payload
}

export interface QuarantineOutcome {
  /** The messages that were changed, or will be. */
  readonly count: number
  /** The work in the background; undefined: it is done. */
  readonly task?: BackgroundTask | undefined
}

/** Receives rejected messages again, with the current rules. */
export function replayQuarantine(
  services: OperationsServices,
  actor: Actor,
  change: QuarantineChange,
): Promise<QuarantineOutcome> {
  return changeQuarantine(services, actor, REPLAY, change)
}

/** Receives messages again that a filter has rejected, once without filters. Those with another fault are not changed. */
export async function releaseQuarantine(
  services: OperationsServices,
  actor: Actor,
  change: QuarantineChange,
): Promise<QuarantineOutcome> {
  if (change.fault === undefined || isReleasable(change.fault)) {
    return changeQuarantine(services, actor, RELEASE, { ...change, fault: FILTERED })
  }
  requirePower(actor, 'administration')
  requireReason(change)
  return { count: 0 }
}

const FILTERED = 'Filtered'

/** Whether messages with this fault can be received without filters. */
export function isReleasable(fault: string): boolean {
  return fault === FILTERED
}

/** Deletes rejected messages, after a confirmation of their number. If there are none, messages that are added in the meantime stay. */
export async function dropQuarantine(
  services: OperationsServices,
  actor: Actor,
  { confirm, ...change }: QuarantineChange,
): Promise<QuarantineOutcome> {
  requirePower(actor, 'administration')
  const { reason, ...filter } = change
  requireReason({ reason })
  const quarantinedRows = await countQuarantined(services.db, filter)
  if (quarantinedRows === 0) return { count: 0 }
  if (confirm !== String(quarantinedRows)) {
    throw new Refusal('confirmation_needed', `Set confirm to ${quarantinedRows} to delete the messages.`, {
      details: { preview: { messages: quarantinedRows } },
    })
  }
  return changeQuarantine(services, actor, DROP, change)
}

const REPLAY = 'quarantine.replay'
const RELEASE = 'quarantine.release'
const DROP = 'quarantine.drop'
type QuarantineWork = typeof REPLAY | typeof RELEASE | typeof DROP
const WORKS: readonly QuarantineWork[] = [REPLAY, RELEASE, DROP]

/** Messages that one transaction changes. More are changed in the background. */
const MESSAGES_OF_CHUNK = 1_000

async function changeQuarantine(
  services: OperationsServices,
  actor: Actor,
  work: QuarantineWork,
  { reason: text, confirm: _, ...filter }: QuarantineChange,
): Promise<QuarantineOutcome> {
  requirePower(actor, 'administration')
  const reason = requireReason({ reason: text })
  const range = await findQuarantineRange(services.db, filter)
  if (range === undefined) return { count: 0 }
  const total = await countQuarantined(services.db, filter)
  let outcome: QuarantineOutcome = { count: 0 }
  const change = { action: work, target: targetOf(filter), reason }
  await recordOperatorChange(services, actor, change, async (transaction) => {
    if (total > MESSAGES_OF_CHUNK) {
      const task = await startBackgroundTask(services, transaction, actor, {
        kind: work,
        target: change.target.label,
        total,
        reason,
        details: { filter, range },
      })
      outcome = { count: total, task }
    } else {
      outcome = { count: (await changeChunk(services, transaction, work, { filter, range })).changed }
    }
    return outcome.count === 0 ? undefined : { count: outcome.count }
  })
  return outcome
}

/** The messages of a range that match a filter. */
interface QuarantineChoice {
  readonly filter: QuarantineFilter
  readonly range: QuarantineRange
}

/** Changes the oldest messages of a range. Of long ones only the beginning is stored: they are not received again. */
async function changeChunk(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  work: QuarantineWork,
  { filter, range }: QuarantineChoice,
): Promise<{ readonly changed: number; readonly skipped: number; readonly rest: QuarantineRange }> {
  const chunk = await lockQuarantined(transaction, filter, range, MESSAGES_OF_CHUNK)
  const changedIds = (work === DROP ? chunk : chunk.filter(({ isWhole }) => isWhole)).map(({ id }) => id)
  if (work === DROP) {
    await deleteQuarantined(transaction, changedIds)
  } else {
    const rows = await replayQuarantined(transaction, changedIds, { isReleased: work === RELEASE })
    runOrAddAfterCommit(services, transaction, rows)
  }
  const rest = { ...range, after: chunk.at(-1)?.id ?? range.end }
  return { changed: changedIds.length, skipped: chunk.length - changedIds.length, rest }
}

/** Lists the work on rejected messages that is not done. */
export async function listQuarantineTasks(
  { db }: Pick<Services, 'db'>,
  actor: Actor,
): Promise<readonly BackgroundTask[]> {
  requirePower(actor, 'administration')
  return listUnfinishedTasks(db, WORKS)
}

/** Changes rejected messages, a chunk in each transaction. The request has written the audit entry. */
export const quarantineTaskHandlers: Pick<BackgroundTaskHandlers, QuarantineWork> = {
  [REPLAY]: handlerOf(REPLAY),
  [RELEASE]: handlerOf(RELEASE),
  [DROP]: handlerOf(DROP),
}

function handlerOf(work: QuarantineWork): BackgroundTaskHandler {
  return {
    async runChunk(services, transaction, { id, details }) {
      const { filter, range } = details as unknown as QuarantineChoice
      const { changed, skipped, rest } = await changeChunk(services, transaction, work, { filter, range })
      await changeTaskDetails(transaction, id, { range: rest })
      return { done: changed, skipped }
    },
    async complete() {},
  }
}

function targetOf({ ids = [], fault, host, state }: QuarantineFilter) {
  const label = [fault, host, state].filter((part) => part !== undefined).join(' ')
  return { type: 'quarantine', label: ids.length > 0 ? ids.slice(0, 10).join(', ') : label }
}

function notFound(): Refusal {
  return new Refusal('quarantined_not_found', 'There is no rejected message with this number.')
}
