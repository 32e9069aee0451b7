import { summariseUndecidedSignUps } from '../../persistence/accounts/pending-sign-ups.js'
import { inRequestTransaction, inTransaction } from '../../persistence/database/transactions.js'
import { appendAuditEntry } from '../../persistence/moderation/audit-log.js'
import {
  type CaseAction,
  type CaseEvent,
  type CaseFilter,
  type CasePage,
  type CasePosition,
  type CaseReport,
  type CaseRow,
  countCaseDecisions,
  countWaitingCases,
  deleteEvidence,
  type ExcludedAuthor,
  findCase,
  findLastReportTime,
  findListedCase,
  hasIdleCases,
  type ListedCaseRow,
  listCaseActions,
  listCaseEvents,
  listCases,
  listReportsOfCase,
  positionOfCase,
  releaseIdleCases,
} from '../../persistence/moderation/cases.js'
import type { IdPage, ListPage } from '../../persistence/sql/id-page.js'
import { DAY_MS } from '../../protocol/durations.js'
import type { ModerationServices, Services } from '../../services/services.js'
import { enqueueLiveEventsAndMails } from '../notifications/enqueue-live-events.js'
import { Refusal } from '../refusals.js'
import { type Actor, requirePower } from './actor.js'
import { MODERATION_LIMITS } from './limits.js'
import { auditContext } from './record-action.js'

/** A case without its text, as lists show it. Only the response about a single case has private content. */
export type ListedCase = ListedCaseRow

export interface CaseWithActions extends ListedCase {
  /** The actions that name the case, oldest first. */
  readonly actions: readonly CaseAction[]
}

export interface CaseList {
  readonly items: readonly CaseWithActions[]
  /** The cases before and after which the neighbouring pages are; undefined: there is no such page. */
  readonly previous: CasePosition | undefined
  readonly next: CasePosition | undefined
}

/** The newest reports and events of a case; a list of its own has all of them. */
export interface CaseDetails extends CaseRow, CaseWithActions {
  readonly reports: ListPage<CaseReport>
  readonly events: ListPage<CaseEvent>
  /** A number that each change of a moderator raises. */
  readonly decisions: number
}

/** A case about a moderator or admin does not exist for them. */
export function excludedAuthorFor({ personId }: Actor): ExcludedAuthor {
  return personId
}

/** Lists cases: open before taken before closed, more reporters first, then the oldest. */
export async function listModerationCases(
  services: ModerationServices,
  actor: Actor,
  filter: CaseFilter,
  page: CasePage,
): Promise<CaseList> {
  requirePower(actor, 'moderation')
  await releaseIdle(services)
  const rows = await listCases(services.db, filter, excludedAuthorFor(actor), { ...page, limit: page.limit + 1 })
  const isBackward = page.after === undefined && page.before !== undefined
  const isCut = rows.length > page.limit
  if (isBackward && !isCut) return listModerationCases(services, actor, filter, { limit: page.limit })
  const items = isBackward && isCut ? rows.slice(1) : rows.slice(0, page.limit)
  const [first, last] = [items[0], items.at(-1)]
  const ids = items.map(({ id }) => id)
  const actions = await listCaseActions(services.db, ids)
  const casesWithActions = items.map((each) => ({
    ...each,
    actions: actions.filter(({ caseId }) => caseId === each.id),
  }))
  return {
    items: casesWithActions,
    // Without a case, the cases after the requested one have been closed: the page before it is still there.
    previous: isBackward || page.after !== undefined ? (first ? positionOfCase(first) : page.after) : undefined,
    next: last && (isBackward || isCut) ? positionOfCase(last) : undefined,
  }
}

/** Reads a case with its text, reports and history. Reading the text of private content is recorded in the audit log. */
export async function readModerationCase(services: ModerationServices, actor: Actor, id: number): Promise<CaseDetails> {
  requirePower(actor, 'moderation')
  await releaseIdle(services)
  const moderationCase = await getCaseDetails(services, actor, id)
  if (!moderationCase.public && moderationCase.text !== null) {
    await inRequestTransaction(services, (transaction) =>
      appendAuditEntry(
        transaction,
        { ...auditContext(actor), ...caseEntry(moderationCase, 'case.private_read') },
        services.now(),
      ),
    )
  }
  return moderationCase
}

/** Reads a case without an audit entry, for the comparison with the version that a moderator has read. */
export async function getCaseDetails({ db }: Pick<Services, 'db'>, actor: Actor, id: number): Promise<CaseDetails> {
  requirePower(actor, 'moderation')
  const moderationCase = await findCase(db, id, excludedAuthorFor(actor))
  if (moderationCase === undefined) throw caseNotFound()
  const newest = { limit: MODERATION_LIMITS.maxPageItems }
  return {
    ...moderationCase,
    reports: await listReportsOfCase(db, id, newest),
    events: await listCaseEvents(db, id, newest),
    decisions: await countCaseDecisions(db, id),
    actions: await listCaseActions(db, [id]),
  }
}

/** Lists the reports of a case, newest first. */
export async function listModerationReports(
  services: Pick<Services, 'db'>,
  actor: Actor,
  id: number,
  page: IdPage,
): Promise<ListPage<CaseReport>> {
  await requireListedCase(services, actor, id)
  return listReportsOfCase(services.db, id, page)
}

/** Lists the history of a case, newest first. */
export async function listCaseHistory(
  services: Pick<Services, 'db'>,
  actor: Actor,
  id: number,
  page: IdPage,
): Promise<ListPage<CaseEvent>> {
  await requireListedCase(services, actor, id)
  return listCaseEvents(services.db, id, page)
}

/** Finds a case without its text. */
export async function requireListedCase({ db }: Pick<Services, 'db'>, actor: Actor, id: number): Promise<ListedCase> {
  requirePower(actor, 'moderation')
  const moderationCase = await findListedCase(db, id, excludedAuthorFor(actor))
  if (moderationCase === undefined) throw caseNotFound()
  return moderationCase
}

/** A case without its text, and a number that each change of a moderator raises. */
export async function readCaseState(
  services: Pick<Services, 'db'>,
  actor: Actor,
  id: number,
): Promise<{ readonly found: ListedCase; readonly decisions: number }> {
  const found = await requireListedCase(services, actor, id)
  return { found, decisions: await countCaseDecisions(services.db, id) }
}

export function findLastReport({ db }: Pick<Services, 'db'>, actor: Actor): Promise<Date | undefined> {
  requirePower(actor, 'moderation')
  return findLastReportTime(db, excludedAuthorFor(actor))
}

/** The times for cases that the pod opens itself. What a closed case was about must not open it again at once. */
export function reopeningTimes(at: Date): { readonly at: Date; readonly reopenBefore: Date } {
  return { at, reopenBefore: new Date(at.getTime() - MODERATION_LIMITS.reopenedAfterSeconds * 1_000) }
}

const CASE_BATCH_SIZE = 1_000
/** Days for which a closed case is kept after its text. */
const CASE_DAYS = 365

/** Erases the reported texts of closed cases after `REPORT_EVIDENCE_DAYS`, and everything else after a year. */
export async function deleteOldEvidence({ db, config, now }: Pick<Services, 'config' | 'db' | 'now'>): Promise<void> {
  const daysAgo = (days: number) => new Date(now().getTime() - days * DAY_MS)
  const until = { textsBefore: daysAgo(config.reportEvidenceDays), casesBefore: daysAgo(CASE_DAYS) }
  for (let erasedCases = CASE_BATCH_SIZE; erasedCases === CASE_BATCH_SIZE; ) {
    erasedCases = await deleteEvidence(db, { ...until, limit: CASE_BATCH_SIZE })
  }
}

/** What waits for a decision of a moderator. */
export interface ModerationOverview {
  readonly cases: { readonly open: number; readonly taken: number; readonly oldest: Date | null }
  readonly signUps: { readonly pending: number; readonly oldest: Date | null }
}

export async function readOverview(services: ModerationServices, actor: Actor): Promise<ModerationOverview> {
  requirePower(actor, 'moderation')
  await releaseIdle(services)
  const [cases, signUps] = await Promise.all([
    countWaitingCases(services.db, excludedAuthorFor(actor)),
    summariseUndecidedSignUps(services.db),
  ])
  return { cases, signUps }
}

/** The fields of an audit entry about a case. The label never holds private text. */
export function caseEntry({ id, targetType, targetGuid }: ListedCase, action: string) {
  return { action, caseId: id, target: { type: targetType, guid: targetGuid, label: `case ${id}` } }
}

export function caseNotFound(): Refusal {
  return new Refusal('case_not_found', 'There is no case with this number.')
}

/** Opens cases again that were taken and then left. */
export async function releaseIdle(services: ModerationServices): Promise<void> {
  const at = services.now()
  const before = new Date(at.getTime() - MODERATION_LIMITS.takenCaseSeconds * 1_000)
  if (!(await hasIdleCases(services.db, before))) return
  await inTransaction(services.db, async (transaction) => {
    await enqueueLiveEventsAndMails(services, transaction, { cases: await releaseIdleCases(transaction, before, at) })
  })
}
