import { randomUUID } from 'node:crypto'
import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'
import { rowsAsColumns } from '../sql/rows-as-columns.js'

export const IMPORT_SECTIONS = [
  'profile',
  'settings',
  'aspects',
  'contacts',
  'blocks',
  'tags',
  'posts',
  'relayables',
  'others_relayables',
  'subscriptions',
  'conversations',
  'photos',
] as const

export type ImportSection = (typeof IMPORT_SECTIONS)[number]

export type ImportState = 'running' | 'paused' | 'done' | 'failed' | 'cancelled'

/** Items of a section: skipped ones were there already. */
export interface SectionCounts {
  readonly found: number
  readonly imported: number
  readonly skipped: number
  readonly refused: number
  readonly by_reason: Readonly<Record<string, number>>
}

export type ImportCounts = Readonly<Partial<Record<ImportSection, SectionCounts>>>

export interface ImportOptions {
  /** Aspects, contacts, tags and blocks. Imports of earlier versions have no such option. */
  readonly contacts?: boolean
  /** Posts, comments, likes and votes, for which the old account moves to this one. */
  readonly content: boolean
  readonly move: boolean
  readonly settings: boolean
  readonly profile: boolean
}

/** An import that a person has begun. */
export interface ArchiveImport {
  readonly id: number
  readonly uid: string
  readonly userId: number
  readonly state: ImportState
  readonly oldAddress: string
  readonly identity: string
  readonly options: ImportOptions
  readonly header: Readonly<Record<string, unknown>>
  readonly sealedKey: Buffer | null
  readonly bytes: number
  readonly sha256: string
  readonly phase: string
  readonly lines: number
  readonly counts: ImportCounts
  /** Bytes of all sizes of the photos that were fetched from the old pod. */
  readonly fetchedBytes: number
  /** How often items were tried again after the end. */
  readonly retries: number
  /** Attempts since the last progress, the current one included. */
  readonly attempts: number
  /** The claim of the worker; null: there is none. */
  readonly claimId: string | null
  readonly error: string | null
  readonly createdAt: Date
  readonly finishedAt: Date | null
}

type NewImport = Omit<
  ArchiveImport,
  'id' | 'state' | 'lines' | 'fetchedBytes' | 'retries' | 'attempts' | 'claimId' | 'error' | 'finishedAt'
>

/** An import as a worker has claimed it. Another worker may claim it later, and then this one changes nothing more. */
export type ClaimedImport = Pick<ArchiveImport, 'id' | 'claimId'>

/** Stores an import; undefined: another one of the account is not finished. */
export async function insertArchiveImport(
  transaction: Knex.Transaction,
  row: NewImport,
): Promise<ArchiveImport | undefined> {
  const [newImport] = await transaction('imports')
    .insert({
      ...row,
      state: 'running',
      options: JSON.stringify(row.options),
      header: JSON.stringify(row.header),
      counts: JSON.stringify(row.counts),
    })
    .onConflict()
    .ignore()
    .returning('*')
  return newImport
}

/** An import without the members of the archive and its key, which only a worker needs. */
export type ListedImport = Pick<ArchiveImport, (typeof LISTED_COLUMNS)[number]>

const LISTED_COLUMNS = [
  'id',
  'uid',
  'userId',
  'state',
  'oldAddress',
  'identity',
  'options',
  'phase',
  'lines',
  'counts',
  'error',
  'createdAt',
  'finishedAt',
] as const satisfies readonly (keyof ArchiveImport)[]

const LISTED = 100

export async function findImportsOfUser(db: Knex, userId: number): Promise<readonly ListedImport[]> {
  return db('imports').where({ userId }).orderBy('id', 'desc').limit(LISTED).select(LISTED_COLUMNS)
}

export async function findImportOfUser(
  db: Knex,
  by: Pick<ArchiveImport, 'userId' | 'uid'>,
): Promise<ListedImport | undefined> {
  return db('imports').where(by).first(LISTED_COLUMNS)
}

export async function findArchiveImport(
  db: Knex,
  by: Partial<Pick<ArchiveImport, 'uid' | 'userId' | 'id'>>,
): Promise<ArchiveImport | undefined> {
  return db('imports').where(by).first()
}

/** The uids among these whose imports have ended and try nothing again. */
export async function findEndedImports(db: Knex, uids: readonly string[]): Promise<readonly string[]> {
  return (
    db('imports')
      .whereIn('uid', [...uids])
      .whereNull('retryAt')
      .whereIn('state', ['done', 'failed', 'cancelled'])
      // A worker of an earlier version, which has no claim, writes the time of the retry after the end.
      .where((query) =>
        query.whereNotNull('claimId').orWhereRaw(`coalesce(finished_at, '-infinity') < now() - interval '1 hour'`),
      )
      .pluck('uid')
  )
}

/** The uids among these that an import or an upload has. */
export async function findKnownArchives(db: Knex, uids: readonly string[]): Promise<readonly string[]> {
  const rows = await queryRows<{ readonly uid: string }>(
    db,
    'select uid from imports where uid = any(:uids) union select uid from import_uploads where uid = any(:uids)',
    { uids: [...uids] },
  )
  return rows.map(({ uid }) => uid)
}

/** The unfinished import of an account. */
export async function findUnfinishedImport(db: Knex, userId: number): Promise<ArchiveImport | undefined> {
  return db('imports').where({ userId }).whereIn('state', ['running', 'paused']).first()
}

/** Guids of people whose imports are not finished: their photos may be stored before their posts. */
export async function findImportingPeople(db: Knex): Promise<readonly string[]> {
  return db('imports')
    .join('users', 'users.id', 'imports.userId')
    .join('people', 'people.id', 'users.personId')
    .whereIn('imports.state', ['running', 'paused'])
    .pluck('people.guid')
}

/**
 * Claims a running import that waits for a worker, or whose worker has died or has met an error, and counts the attempt. Imports take
 * turns: the first one is that after the import `after`. Imports in `except` are left out.
 */
export async function claimImport(
  db: Knex,
  {
    deadAfterSeconds,
    id = null,
    after = 0,
    except = [],
  }: {
    readonly deadAfterSeconds: number
    readonly id?: number | null
    readonly after?: number | undefined
    readonly except?: readonly number[]
  },
): Promise<ArchiveImport | undefined> {
  const claimId = randomUUID()
  const [claimedRow] = await queryRows<{ readonly id: number }>(
    db,
    `update imports set alive_at = now(), attempts = attempts + 1, claim_id = ?
     where id = (
       select id from imports
       where state = 'running' and (alive_at is null or alive_at < now() - make_interval(secs => ?)) and id = coalesce(?, id)
         and id <> all(?::bigint[])
       order by id <= ?, id limit 1 for update skip locked
     )
     returning id`,
    [claimId, deadAfterSeconds, id, [...except], after],
  )
  return claimedRow && db('imports').where({ id: claimedRow.id, claimId }).first()
}

/** Whether another import waits for a worker. */
export async function hasWaitingImport(db: Knex, id: number): Promise<boolean> {
  const waiting = await db('imports').where({ state: 'running', aliveAt: null }).whereNot({ id }).first('id')
  return waiting !== undefined
}

/** Records a heartbeat of the worker; false: the import is to stop. */
export async function recordImportHeartbeat(db: Knex, { id, claimId }: ClaimedImport): Promise<boolean> {
  const rowCount = await db('imports').where({ id, claimId, state: 'running' }).update({ aliveAt: db.fn.now() })
  return rowCount > 0
}

/** Another process may continue immediately, even if the import was paused. The attempt does not count. */
export async function releaseImport(db: Knex, { id, claimId }: ClaimedImport): Promise<void> {
  await db('imports')
    .where({ id, claimId })
    .whereIn('state', ['running', 'paused'])
    .update({ aliveAt: null, claimId: null, attempts: db.raw('greatest(attempts - 1, 0)') })
}

export interface ItemOutcome {
  readonly section: ImportSection
  readonly position: number
  readonly ref: string
  readonly outcome: 'imported' | 'already_there' | 'refused'
  readonly reason: string | null
}

/** Stores the outcomes of a batch. Returns those that an earlier attempt has not stored. */
export async function insertItemOutcomes(
  transaction: Knex.Transaction,
  importId: number,
  items: readonly ItemOutcome[],
): Promise<readonly ItemOutcome[]> {
  if (items.length === 0) return []
  return queryRows<ItemOutcome>(
    transaction,
    `insert into import_items (import_id, section, position, ref, outcome, reason)
     select ?, * from unnest(?::text[], ?::integer[], ?::text[], ?::text[], ?::text[])
     on conflict do nothing
     returning section, position, ref, outcome, reason`,
    [importId, ...rowsAsColumns(items, ['section', 'position', 'ref', 'outcome', 'reason'])] as Knex.RawBinding[],
  )
}

/** Stores how far an import is; false: it no longer runs, or another worker has claimed it. The attempts begin anew if the cursor has moved. */
export async function saveImportProgress(
  transaction: Knex.Transaction,
  { id, claimId }: ClaimedImport,
  progress: Pick<ArchiveImport, 'phase' | 'lines' | 'counts' | 'fetchedBytes'>,
): Promise<boolean> {
  const { phase, lines, counts, fetchedBytes } = progress
  const rowCount = await transaction('imports')
    .where({ id, claimId, state: 'running' })
    .update({
      phase,
      lines,
      fetchedBytes,
      counts: JSON.stringify(counts),
      aliveAt: transaction.fn.now(),
      attempts: transaction.raw('case when phase = ? and lines = ? then attempts else 1 end', [phase, lines]),
    })
  return rowCount > 0
}

/** The key of the old account is not needed once the move is signed. False: as for `saveImportProgress`. */
export async function deleteImportKey(transaction: Knex.Transaction, { id, claimId }: ClaimedImport): Promise<boolean> {
  const rowCount = await transaction('imports').where({ id, claimId, state: 'running' }).update({ sealedKey: null })
  return rowCount > 0
}

/** Locks an import of an account: a batch that is being stored ends first. */
export async function lockArchiveImport(
  transaction: Knex.Transaction,
  by: Pick<ArchiveImport, 'userId' | 'uid'>,
): Promise<ArchiveImport | undefined> {
  return transaction('imports').where(by).forUpdate().first()
}

/** Pauses or continues an import. Its worker reads the state with its next heartbeat. */
export async function setArchiveImportState(
  transaction: Knex.Transaction,
  id: number,
  state: 'running' | 'paused',
): Promise<void> {
  await transaction('imports').where({ id }).update({ state })
}

/** Ends a cancelled import, and deletes its items. */
export async function cancelImportRow(transaction: Knex.Transaction, id: number, finishedAt: Date): Promise<void> {
  await transaction('imports').where({ id }).update({ state: 'cancelled', sealedKey: null, finishedAt })
  await transaction('importItems').where({ importId: id }).delete()
}

/** Ends a running import. False: as for `saveImportProgress`. */
export async function finishImport(
  db: Knex,
  { id, claimId }: ClaimedImport,
  result: {
    readonly state: ImportState
    readonly finishedAt: Date
    readonly error?: string
    /** When items are tried again. */
    readonly retryAt?: Date | null
  },
): Promise<boolean> {
  const rowCount = await db('imports')
    .where({ id, claimId, state: 'running' })
    .update({ ...result, sealedKey: null })
  return rowCount > 0
}

/** Whether an import that is not running has no outcome of a photo: after a cancellation, or while it is paused. */
export async function isStoppedBeforePhoto(db: Knex, importId: number, position: number): Promise<boolean> {
  const found = await db('imports')
    .where({ id: importId })
    .andWhere((other) =>
      other
        .where({ state: 'running' })
        .orWhereExists(db('importItems').where({ importId, section: 'photos', position }).select(db.raw('1'))),
    )
    .first('id')
  return found === undefined
}

/** Old names of the photos whose files are stored, or that the import has stored itself, page by page. */
export async function* listImportedPhotoNames(
  db: Knex,
  importId: number,
  size: number,
  outcomes: readonly ItemOutcome['outcome'][] = ['imported', 'already_there'],
): AsyncGenerator<readonly string[]> {
  let after = -1
  for (;;) {
    const page: readonly Pick<ItemOutcome, 'position' | 'ref'>[] = await db('importItems')
      .where({ importId, section: 'photos' })
      .whereIn('outcome', [...outcomes])
      .where('position', '>', after)
      .orderBy('position')
      .limit(size)
      .select('position', 'ref')
    const last = page.at(-1)
    if (last === undefined) return
    yield page.map(({ ref }) => ref)
    after = last.position
  }
}

/** The items of an import in the order of the archive, page by page. */
export async function* listItemOutcomes(
  db: Knex,
  importId: number,
  size: number,
): AsyncGenerator<readonly ItemOutcome[]> {
  let after: readonly (string | number)[] = ['', -1, '']
  for (;;) {
    const page = await queryRows<ItemOutcome>(
      db,
      `select section, position, ref, outcome, reason from import_items
       where import_id = ? and (section, position, ref) > (?, ?::integer, ?)
       order by section, position, ref limit ?`,
      [importId, ...after, size],
    )
    const last = page.at(-1)
    if (last === undefined) return
    yield page
    after = [last.section, last.position, last.ref]
  }
}
