import { createHash } from 'node:crypto'
import type { Knex } from 'knex'
import { type IdPage, type ListPage, readIdPage } from '../sql/id-page.js'
import { type ExcludedAuthor, IS_NOT_ABOUT_AUTHOR_SQL } from './cases.js'

export type AuditChannel = 'api' | 'console' | 'command' | 'system'

export interface AuditActor {
  /** Null: a command or the pod itself. */
  readonly guid: string | null
  readonly name: string
  readonly role: 'member' | 'moderator' | 'admin' | 'command' | 'system'
}

export interface AuditTarget {
  readonly type: string
  readonly guid: string | null
  /** The name of the target at that time: an address, a user name, a domain. */
  readonly label: string
}

export type AuditValues = Readonly<Record<string, unknown>>

export interface NewAuditEntry {
  readonly actor: AuditActor
  readonly via: AuditChannel
  readonly clientId?: string | undefined
  readonly action: string
  readonly target: AuditTarget
  readonly reason?: string | undefined
  readonly before?: AuditValues | undefined
  readonly after?: AuditValues | undefined
  readonly caseId?: number | undefined
  readonly batchId?: number | undefined
  readonly undoes?: number | undefined
  readonly traceId?: string | undefined
}

export interface AuditEntry {
  readonly id: number
  readonly at: Date
  readonly actor: AuditActor
  readonly via: AuditChannel
  readonly clientId: string | null
  readonly action: string
  readonly target: AuditTarget
  readonly reason: string | null
  readonly before: AuditValues | null
  readonly after: AuditValues | null
  readonly caseId: number | null
  readonly batchId: number | null
  readonly undoes: number | null
  readonly traceId: string | null
  readonly hash: Buffer
}

const FIRST_HASH = Buffer.alloc(32)
const ENTRY_BATCH_SIZE = 1_000

/**
 * Appends an entry to the audit log in the transaction of the action. The advisory lock gives the entries one order; it is held until
 * the commit, so this is the last statement of an action.
 */
export async function appendAuditEntry(transaction: Knex.Transaction, entry: NewAuditEntry, at: Date): Promise<number> {
  await transaction.raw(`select pg_advisory_xact_lock(hashtext('audit_entries'))`)
  const last: Pick<AuditEntry, 'id' | 'hash'> | undefined = await transaction('audit_entries')
    .orderBy('id', 'desc')
    .first('id', 'hash')
  const row = {
    id: (last?.id ?? 0) + 1,
    at,
    actor: entry.actor,
    via: entry.via,
    clientId: entry.clientId ?? null,
    action: entry.action,
    target: entry.target,
    reason: entry.reason ?? null,
    before: entry.before ?? null,
    after: entry.after ?? null,
    caseId: entry.caseId ?? null,
    batchId: entry.batchId ?? null,
    undoes: entry.undoes ?? null,
    traceId: entry.traceId ?? null,
  }
  await transaction('audit_entries').insert({
    ...row,
    actor: JSON.stringify(row.actor),
    target: JSON.stringify(row.target),
    before: row.before && JSON.stringify(row.before),
    after: row.after && JSON.stringify(row.after),
    hash: hashOf(last?.hash ?? FIRST_HASH, row),
  })
  return row.id
}

export interface AuditFilter {
  /** The user name, address or guid of a person, `command` or `system`. */
  readonly actor?: string | undefined
  readonly actions?: readonly string[] | undefined
  /** A guid. */
  readonly target?: string | undefined
  /** A domain, as the host of an address or as the target itself. */
  readonly domain?: string | undefined
  readonly since?: Date | undefined
  readonly until?: Date | undefined
}

/**
 * Keeps the rows of an actor with this user name, guid or address. The address is looked up first: with constants, the planner knows
 * that an actor has few rows and uses their indexes. With a subquery it expects many, and reads all rows.
 */
export async function whereActorIs(db: Knex, query: Knex.QueryBuilder, actor: string): Promise<void> {
  const name = actor.toLowerCase()
  const person = name.includes('@') ? await db('people').where({ address: name }).first('guid') : undefined
  query.whereRaw(`(actor->>'name' = ? or actor->>'guid' = ?)`, [name, person?.guid ?? actor])
}

/** Lists entries, newest first. */
export async function listAuditEntries(
  db: Knex,
  { actor, actions, target, domain, since, until }: AuditFilter,
  excludedAuthorId: ExcludedAuthor,
  page: IdPage,
): Promise<ListPage<AuditEntry>> {
  const query = selectEntries(db, excludedAuthorId)
  if (actor !== undefined) await whereActorIs(db, query, actor)
  if (actions !== undefined && actions.length > 0) query.whereIn('action', [...actions])
  if (target !== undefined) query.whereRaw(`target->>'guid' = ?`, [target])
  if (domain !== undefined)
    query.whereRaw(`(target->>'label' = ? or split_part(target->>'label', '@', 2) = ?)`, [domain, domain])
  if (since !== undefined) query.where('at', '>=', since)
  if (until !== undefined) query.where('at', '<', until)
  return readIdPage(query, page)
}

export async function findAuditEntry(
  db: Knex,
  id: number,
  excludedAuthorId: ExcludedAuthor,
): Promise<AuditEntry | undefined> {
  return selectEntries(db, excludedAuthorId).where({ id }).first()
}

function selectEntries(db: Knex, excludedAuthorId: ExcludedAuthor): Knex.QueryBuilder {
  const query = db('audit_entries')
  return excludedAuthorId === null ? query : query.whereRaw(IS_NOT_ABOUT_AUTHOR_SQL, [excludedAuthorId])
}

/** An entry as its reader may see it. */
export interface ReadAuditEntry extends AuditEntry {
  /** It is about a case on the reader: only its number and hash are shown, so that the chain stays complete. */
  readonly isAboutReader: boolean
}

/** Reads all entries from the oldest on, in chunks, so that the log of years needs little memory. */
export async function* readAuditLog(db: Knex, readerId: ExcludedAuthor = null): AsyncGenerator<ReadAuditEntry> {
  const isAboutReader = readerId === null ? db.raw('false') : db.raw(`not ${IS_NOT_ABOUT_AUTHOR_SQL}`, [readerId])
  for (let last = 0; ; ) {
    const entries: readonly ReadAuditEntry[] = await db('audit_entries')
      .select('*', db.raw('? as "isAboutReader"', [isAboutReader]))
      .where('id', '>', last)
      .orderBy('id')
      .limit(ENTRY_BATCH_SIZE)
    yield* entries
    const next = entries.at(-1)?.id
    if (next === undefined || entries.length < ENTRY_BATCH_SIZE) return
    last = next
  }
}

export interface AuditVerification {
  readonly entries: number
  /** The first entry that was changed, or that follows a deleted one. */
  readonly brokenId?: number
}

/** Recomputes the hash of every entry. Entries deleted at the end cannot be detected: compare the count with an earlier one. */
export async function verifyAuditLog(db: Knex): Promise<AuditVerification> {
  let entries = 0
  let hash: Buffer = FIRST_HASH
  for await (const entry of readAuditLog(db)) {
    entries += 1
    if (entry.id !== entries || !hashOf(hash, entry).equals(entry.hash)) return { entries, brokenId: entry.id }
    hash = entry.hash
  }
  return { entries }
}

function hashOf(previous: Buffer, entry: Omit<AuditEntry, 'hash'>): Buffer {
  const { id, at, actor, via, clientId, action, target, reason, before, after, caseId, batchId, undoes, traceId } =
    entry
  const content = {
    id,
    at: at.toISOString(),
    actor,
    via,
    clientId,
    action,
    target,
    reason,
    before,
    after,
    caseId,
    batchId,
    undoes,
    traceId,
  }
  return createHash('sha256').update(previous).update(JSON.stringify(content, sortKeys)).digest()
}

/** The database orders the keys of a JSON object in its own way. */
function sortKeys(_name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)))
}
