import { Readable } from 'node:stream'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import {
  type AuditEntry,
  type AuditFilter,
  type AuditVerification,
  appendAuditEntry,
  findAuditEntry,
  listAuditEntries,
  type ReadAuditEntry,
  readAuditLog,
  verifyAuditLog,
} from '../../persistence/moderation/audit-log.js'
import type { IdPage, ListPage } from '../../persistence/sql/id-page.js'
import type { Services } from '../../services/services.js'
import { findAccountWithRole } from '../accounts/staff.js'
import { Refusal } from '../refusals.js'
import { type Actor, actorOfAccount, requirePower } from './actor.js'
import { csvLine } from './csv.js'
import { auditContext } from './record-action.js'

export type { AuditEntry, AuditFilter, AuditVerification }

/** Records that a moderator or admin has failed to authenticate before a change. */
export async function recordFailedStepUp(
  services: Pick<Services, 'db' | 'requestContext' | 'now'>,
  userId: number,
  traceId: string,
): Promise<void> {
  const account = await findAccountWithRole(services, { 'users.id': userId })
  if (account === undefined || account.role === null) return
  const { guid, username, role } = account
  const actor = actorOfAccount({ ...account, role }, { via: 'console', traceId })
  const target = { type: 'person', guid, label: username }
  await inRequestTransaction(services, (transaction) =>
    appendAuditEntry(transaction, { ...auditContext(actor), action: 'step_up.failed', target }, services.now()),
  )
}

/** Lists entries of the audit log, newest first. Those on cases about the reader are left out. */
export async function listAudit(
  { db }: Pick<Services, 'db'>,
  actor: Actor,
  filter: AuditFilter,
  page: IdPage,
): Promise<ListPage<AuditEntry>> {
  requirePower(actor, 'moderation')
  return listAuditEntries(db, filter, actor.personId, page)
}

export async function getAuditEntry({ db }: Pick<Services, 'db'>, actor: Actor, id: number): Promise<AuditEntry> {
  requirePower(actor, 'moderation')
  const entry = await findAuditEntry(db, id, actor.personId)
  if (entry === undefined) throw new Refusal('not_found', `The audit log has no entry ${id}.`)
  return entry
}

export async function verifyAudit({ db }: Pick<Services, 'db'>): Promise<AuditVerification> {
  return verifyAuditLog(db)
}

export type AuditFormat = 'ndjson' | 'csv'

/**
 * Streams the whole audit log, oldest entry first. The export itself is an entry, the last one. Entries on cases about the reader have
 * only their number and hash.
 */
export async function exportAudit(
  services: Pick<Services, 'db' | 'requestContext' | 'now'>,
  actor: Actor,
  format: AuditFormat,
): Promise<Readable> {
  requirePower(actor, 'administration')
  await inRequestTransaction(services, (transaction) =>
    appendAuditEntry(
      transaction,
      {
        ...auditContext(actor),
        action: 'audit.export',
        target: { type: 'audit', guid: null, label: format },
      },
      services.now(),
    ),
  )
  return Readable.from(writeEntries(readAuditLog(services.db, actor.personId), format))
}

async function* writeEntries(entries: AsyncIterable<ReadAuditEntry>, format: AuditFormat): AsyncGenerator<string> {
  if (format === 'csv') yield `${CSV_COLUMNS.join(',')}\r\n`
  for await (const entry of entries) {
    if (format === 'csv') yield entry.isAboutReader ? withheldLine(entry) : lineOf(entry)
    else yield `${JSON.stringify(entry.isAboutReader ? withheldFields(entry) : auditEntryFields(entry))}\n`
  }
}

/** The fields of an entry on a case about the reader. */
function withheldFields(entry: AuditEntry): object {
  const { id, hash, ...others } = auditEntryFields(entry)
  return { id, ...Object.fromEntries(Object.keys(others).map((name) => [name, null])), hash }
}

function withheldLine({ id, hash }: AuditEntry): string {
  return csvLine(CSV_COLUMNS.map((name) => (name === 'id' ? id : name === 'hash' ? hash.toString('hex') : null)))
}

/** The fields of an entry, as in an export. Clients and commands show the same. */
export function auditEntryFields(entry: AuditEntry) {
  const { id, at, actor, via, clientId, action, target, reason, before, after } = entry
  return {
    id,
    at: at.toISOString(),
    actor,
    via,
    client_id: clientId,
    action,
    target,
    reason,
    before,
    after,
    case_id: entry.caseId,
    batch_id: entry.batchId,
    undoes: entry.undoes,
    trace_id: entry.traceId,
    hash: entry.hash.toString('hex'),
  }
}

const CSV_COLUMNS = [
  'id',
  'at',
  'actor',
  'role',
  'via',
  'action',
  'target_type',
  'target_guid',
  'target',
  'reason',
  'before',
  'after',
  'case_id',
  'batch_id',
  'undoes',
  'actor_guid',
  'client_id',
  'trace_id',
  'hash',
]

function lineOf(entry: AuditEntry): string {
  const { id, at, actor, via, clientId, action, target, reason, before, after } = entry
  const { caseId, batchId, undoes, traceId, hash } = entry
  const cells = [id, at.toISOString(), actor.name, actor.role, via, action, target.type, target.guid, target.label]
  const changes = [before, after].map((values) => values && JSON.stringify(values))
  const origin = [actor.guid, clientId, traceId]
  return csvLine([...cells, reason, ...changes, caseId, batchId, undoes, ...origin, hash.toString('hex')])
}
