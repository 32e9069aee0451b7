import { handOverAfter } from '../../jobs/outbox/outbox.js'
import {
  countQuarantined,
  deleteQuarantined,
  findQuarantined,
  findQuarantinedPayload,
  listQuarantined,
  type QuarantinedMessage,
  type QuarantineFilter,
  replayQuarantined,
} from '../../persistence/inbound/quarantine.js'
import type { IdPage, IdPageResult } from '../../persistence/sql/id-page.js'
import type { Pod } from '../../pod/pod.js'
import { type Actor, requirePower } from '../moderation/actor.js'
import { requireReason } from '../moderation/record-action.js'
import { Refusal } from '../refusals.js'
import { recordOperatorChange } from './record-operator-change.js'

type QuarantinePod = Pick<Pod, 'db' | 'jobs' | 'now' | 'log' | 'requestContext'>

export interface QuarantineChange extends QuarantineFilter {
  readonly reason?: string | undefined
  /** The number of chosen messages; needed to delete them. */
  readonly confirm?: string | undefined
}

/** Lists rejected messages without their payloads, latest first. */
export async function listQuarantine(
  { db }: Pick<Pod, 'db'>,
  actor: Actor,
  filter: QuarantineFilter,
  page: IdPage,
): Promise<IdPageResult<QuarantinedMessage>> {
  requirePower(actor, 'administration')
  return listQuarantined(db, filter, page)
}

export async function readQuarantined({ db }: Pick<Pod, 'db'>, actor: Actor, id: number): Promise<QuarantinedMessage> {
  requirePower(actor, 'administration')
  const message = await findQuarantined(db, id)
  if (message === undefined) throw notFound()
  return message
}

/** Returns the message as it was received; the audit log records the access. */
export async function readQuarantinedPayload(pod: QuarantinePod, actor: Actor, id: number): Promise<string> {
  requirePower(actor, 'administration')
  const payload = await findQuarantinedPayload(pod.db, id)
  if (payload === undefined) throw notFound()
  await recordOperatorChange(pod, actor, {
    action: 'quarantine.payload',
    target: { type: 'quarantine', label: String(id) },
  })
  return payload
}

/** Receives rejected messages again, with the current rules; returns their number. */
export async function replayQuarantine(pod: QuarantinePod, actor: Actor, change: QuarantineChange): Promise<number> {
  return receiveAgain(pod, actor, change, { action: 'quarantine.replay', isReleased: false })
}

/** Receives messages again that a filter has rejected, once without filters; returns their number. */
export async function releaseQuarantine(pod: QuarantinePod, actor: Actor, change: QuarantineChange): Promise<number> {
  return receiveAgain(pod, actor, { ...change, fault: 'Filtered' }, { action: 'quarantine.release', isReleased: true })
}

async function receiveAgain(
  pod: QuarantinePod,
  actor: Actor,
  { reason: text, confirm: _, ...filter }: QuarantineChange,
  { action, isReleased }: { readonly action: string; readonly isReleased: boolean },
): Promise<number> {
  requirePower(actor, 'administration')
  const reason = requireReason({ reason: text })
  let count = 0
  const operation = { action, target: targetOf(filter), reason }
  await recordOperatorChange(pod, actor, operation, async (transaction) => {
    const rows = await replayQuarantined(transaction, filter, { isReleased })
    count = rows.length
    handOverAfter(pod, transaction, rows)
    return count === 0 ? undefined : { count }
  })
  return count
}

/** Deletes rejected messages; returns their number. */
export async function dropQuarantine(
  pod: QuarantinePod,
  actor: Actor,
  { reason: text, confirm, ...filter }: QuarantineChange,
): Promise<number> {
  requirePower(actor, 'administration')
  const reason = requireReason({ reason: text })
  const quarantinedRows = await countQuarantined(pod.db, filter)
  if (quarantinedRows > 0 && confirm !== String(quarantinedRows)) {
    throw new Refusal('confirmation_needed', `Set confirm to ${quarantinedRows} to delete the messages.`, {
      details: { preview: { messages: quarantinedRows } },
    })
  }
  let count = 0
  const operation = { action: 'quarantine.drop', target: targetOf(filter), reason }
  await recordOperatorChange(pod, actor, operation, async (transaction) => {
    count = await deleteQuarantined(transaction, filter)
    return count === 0 ? undefined : { count }
  })
  return count
}

function targetOf({ ids = [], fault, host, state }: QuarantineFilter) {
  const label = [fault, host, state].filter((part) => part !== undefined).join(' ')
  return { type: 'quarantine', label: ids.length > 0 ? ids.slice(0, 10).join(', ') : label }
}

function notFound(): Refusal {
  return new Refusal('quarantined_not_found', 'There is no rejected message with this number.')
}
