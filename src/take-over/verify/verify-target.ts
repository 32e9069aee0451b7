import type pg from 'pg'
import type { Config } from '../../config/config.js'
import type { ReportProgress } from '../../persistence/operations/progress.js'
import type { Secrets } from '../../services/services.js'
import { isPair } from '../preflight/key-pairs.js'
import { shareTasks } from '../share-tasks.js'
import { TakeOverError } from '../take-over-error.js'
import { compareFiles } from './compare-files.js'
import { compareRights } from './compare-rights.js'
import { COMPARISONS, type Comparison, KEPT_ROWS } from './comparisons.js'
import { countOriginals, type OriginalCount } from './count-originals.js'
import { countSignatures, type SignatureCount } from './count-signatures.js'
import { OTHER_COMPARISONS } from './other-comparisons.js'
import { type ProbeReport, probeTakenOverPod } from './probe-pod.js'

export interface Difference {
  readonly check: string
  readonly detail: string
  readonly examples: readonly string[]
}

interface Balance {
  readonly table: string
  readonly rows: number
  readonly copied: number
  /** Merged and dropped rows by code. */
  readonly others: Readonly<Record<string, number>>
}

export interface VerifyReport {
  readonly balances: readonly Balance[]
  readonly signatures: readonly SignatureCount[]
  readonly keys: number
  /** Requests to this pod. */
  readonly requests: ProbeReport
  /** Compared files; undefined: the folder of pictures was not named. */
  readonly files: number | undefined
  /** Undefined: the pictures do not come from another server. */
  readonly originals: OriginalCount | undefined
  readonly differences: readonly Difference[]
}

export interface VerifyOptions {
  readonly config: Config
  readonly secrets: Secrets
  /** The folder of pictures, unless it is that of this pod too. */
  readonly uploads: string | undefined
  readonly isRemoteUploads: boolean
  /** Pictures that the old pod has written later are not compared. */
  readonly writtenBefore: Date
  readonly shouldVerifyAllSignatures: boolean
  readonly signal: AbortSignal
  readonly report: ReportProgress
}

const EXAMPLES = 20
/** Compared rows of a table of which not all are compared. */
const SAMPLED_ROWS = 1_000
const KEY_BATCH_SIZE = 200

/** Compares the target with the staging tables, by statements of its own and in two sessions. Nothing is changed. */
export async function verifyTarget(
  sessions: readonly [pg.Client, pg.Client],
  options: VerifyOptions,
): Promise<VerifyReport> {
  const [session] = sessions
  for (const each of sessions) await each.query(`set work_mem = '64MB'`)
  const differences: Difference[] = []
  const closed = await listClosedBySwitch(session)
  const balances = await readBalances(session)
  for (const { table, rows, copied, others } of balances) {
    const totalRows = Object.values(others).reduce((sum, count) => sum + count, copied)
    const mayBeLess = closed.personIds.length > 0
    if (totalRows > rows || (totalRows < rows && !mayBeLess))
      differences.push({ check: table, detail: `${rows} rows in the source, ${totalRows} accounted for`, examples: [] })
  }
  differences.push(...(await compareTables(sessions, options, closed)))
  const keys = await compareKeys(session, options)
  differences.push(...keys.differences)
  const signatures = await countSignatures(session, options)
  differences.push(...(await compareRights(session, closed.userIds)))
  const { config, uploads } = options
  const files = uploads === undefined ? undefined : await compareFiles(uploads, config, options)
  differences.push(...(files?.differences ?? []))
  const originals = options.isRemoteUploads ? await countOriginals(session, config, options.signal) : undefined
  if (originals !== undefined && originals.photos > 0 && originals.missing === originals.photos) {
    differences.push({ check: 'pictures', detail: `no original of ${originals.photos} photos was found`, examples: [] })
  }
  const probeResult = await probeTakenOverPod(session, config)
  differences.push(...probeResult.differences)
  return {
    balances,
    signatures,
    keys: keys.checked,
    requests: probeResult.report,
    files: files?.files,
    originals,
    differences,
  }
}

/** The differences are in the order of the comparisons, whichever session has found them first. */
async function compareTables(
  sessions: readonly pg.Client[],
  { signal, report }: VerifyOptions,
  closed: ClosedBySwitch,
): Promise<readonly Difference[]> {
  const differences = new Map<Comparison, Difference>()
  let done = 0
  const comparisons = [...COMPARISONS, ...OTHER_COMPARISONS]
  await shareTasks(sessions, comparisons, signal, async (session, comparison) => {
    const { expected, actual } = await sampleOf(session, comparison)
    const { rows } = await session.query<{ id: string }>(`
      select id::text from (${expected}) as expected full join (${actual}) as actual using (id)
      where expected.content is distinct from actual.content ${exceptClosedSql(comparison, closed)} order by id limit ${EXAMPLES}`)
    const examples = rows.map(({ id }) => id)
    if (examples.length > 0) differences.set(comparison, { check: comparison.name, detail: 'rows differ', examples })
    done += 1
    report({ step: 'comparisons', done, total: comparisons.length })
  })
  return comparisons.flatMap((comparison) => differences.get(comparison) ?? [])
}

/** People whose closing the old pod had not completed. The switch has closed them after its comparison, and deleted their rows. */
interface ClosedBySwitch {
  readonly personIds: readonly number[]
  readonly userIds: readonly number[]
}

async function listClosedBySwitch(session: pg.Client): Promise<ClosedBySwitch> {
  const { rows } = await session.query<{ personId: number; userId: number | null }>(`
    select people.id::float as "personId", users.id::float as "userId"
    from take_over.account_deletions as deletions join people on people.id = deletions.person_id and people.closed_at is not null
    left join users on users.person_id = people.id
    where deletions.completed_at is null and exists (select from public.take_over where state = 'open') order by 1`)
  return {
    personIds: rows.map(({ personId }) => personId),
    userIds: rows.flatMap(({ userId }) => userId ?? []),
  }
}

/** A condition that leaves out the rows that a closing deletes or empties. */
function exceptClosedSql({ name }: Comparison, { personIds, userIds }: ClosedBySwitch): string {
  if (personIds.length === 0) return ''
  const emptied: Readonly<Record<string, readonly number[]>> = {
    profiles: personIds,
    users: userIds,
  }
  const ids = emptied[name] ?? []
  return `and actual.content is not null ${ids.length === 0 ? '' : `and id not in (${ids.join(', ')})`}`
}

/** The comparison of some rows: of a large table one of many, by the id. */
async function sampleOf(
  session: pg.Client,
  { expected, actual, sampled }: Comparison,
): Promise<Pick<Comparison, 'expected' | 'actual'>> {
  if (sampled === undefined) return { expected, actual }
  const { rows } = await session.query(`select count(*)::float as count from take_over."${sampled}"`)
  const step = Math.max(1, Math.floor(rows[0].count / SAMPLED_ROWS))
  const sampleSql = (select: string) => `select * from (${select}) as whole where id % ${step} = 0`
  return { expected: sampleSql(expected), actual: sampleSql(actual) }
}

/** Throws if anything differs. */
export function requireEqual({ differences }: VerifyReport): void {
  const [first] = differences
  if (first === undefined) return
  const { check, detail, examples } = first
  const ids = examples.length === 0 ? '' : `: ids ${examples.join(', ')}`
  throw new TakeOverError(
    `The target differs from the source in ${differences.length} ${differences.length === 1 ? 'check' : 'checks'}; the first: ${check}, ${detail}${ids}.`,
  )
}

async function readBalances(session: pg.Client): Promise<readonly Balance[]> {
  const { rows: skipped } = await session.query<{ source: string; code: string; count: number }>(
    'select source, code, count(*)::float as count from take_over.skipped_rows group by source, code order by source, code',
  )
  const balances: Balance[] = []
  for (const [table, select] of Object.entries(KEPT_ROWS)) {
    const { rows: staged } = await session.query(`select count(*)::float as count from take_over."${table}"`)
    const { rows: kept } = await session.query(select)
    const others = skipped.filter(({ source }) => source === table).map(({ code, count }) => [code, count] as const)
    balances.push({ table, rows: staged[0].count, copied: Number(kept[0].count), others: Object.fromEntries(others) })
  }
  return balances
}

interface SealedKey {
  readonly id: number
  readonly sealed: Buffer
  readonly publicKey: string
  /** The account is closed or locked, and its key is that of the old pod. */
  readonly mayMismatch: boolean
}

/**
 * Each private key opens and fits the public key. A pair of a closed or locked account may have been broken in the source; then its
 * private key must be that of the source.
 */
async function compareKeys(
  session: pg.Client,
  { secrets, signal }: VerifyOptions,
): Promise<{ readonly checked: number; readonly differences: readonly Difference[] }> {
  const brokenIds: string[] = []
  let checked = 0
  for (let after = 0; ; ) {
    signal.throwIfAborted()
    const { rows } = await session.query<SealedKey>(SELECT_KEYS_SQL, [after, KEY_BATCH_SIZE])
    const last = rows.at(-1)
    if (last === undefined) break
    after = last.id
    checked += rows.length
    brokenIds.push(...rows.filter((row) => !isKeyPairComplete(row, secrets)).map(({ id }) => String(id)))
  }
  if (brokenIds.length === 0) return { checked, differences: [] }
  const difference = { check: 'private keys', detail: 'do not fit', examples: brokenIds.slice(0, EXAMPLES) }
  return { checked, differences: [difference] }
}

function isKeyPairComplete({ id, sealed, publicKey, mayMismatch }: SealedKey, secrets: Secrets): boolean {
  try {
    const privateKey = secrets.decrypt(sealed, `user ${id}`)
    return mayMismatch || isPair({ publicKey, privateKey })
  } catch {
    return false
  }
}

const SELECT_KEYS_SQL = `
  select users.id::float as id, sealed_private_key as sealed, people.public_key as "publicKey",
    (users.closed_at is not null or users.locked_at is not null)
      and coalesce(sealed_private_key = source.serialized_private_key, true) as "mayMismatch"
  from users join user_secrets on user_secrets.user_id = users.id join people on people.id = users.person_id
  join take_over.users as source on source.id = users.id
  where users.id > $1 order by users.id limit $2`
