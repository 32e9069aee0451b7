import { statfs } from 'node:fs/promises'
import type { Knex } from 'knex'
import type { Config } from '../../config/config.js'
import type { SidekiqJobs } from '../../jobs/queues/sidekiq-jobs.js'
import { queryRow } from '../../persistence/database/database.js'
import { findTakeOver, wasPodOpened } from '../../persistence/operations/take-over-state.js'
import { findSidekiqJobs } from '../sidekiq/require-idle-sidekiq.js'
import { readSchemaState, type SchemaState } from '../source/schema-state.js'
import type { Source } from '../source/source.js'
import { SOURCE_TABLES, TABLES_LEFT_OUT } from '../source/source-tables.js'
import { countFiles, type FileCount } from '../uploads/count-files.js'
import { findFaultOfUploads, isRemoteUploads } from '../uploads/fetch-files.js'
import { hasPictures, picturesFolder } from '../uploads/pictures-folder.js'
import { estimateTimes, type TakeOverTimes } from './estimate-times.js'
import { findInvalidRows, type InvalidRowFinding, mergeFindings, type UncheckedTable } from './findings.js'
import { checkKeyPairs, type KeyPairs } from './key-pairs.js'
import { findLimitedClients, type LimitedClients } from './limited-clients.js'
import { findInvalidSignatures } from './signatures.js'

/** Bytes of the target for each byte of the source: staging tables, tables and indexes. */
const SPACE_FACTOR = 2.6

/** Reasons that prevent the take-over. */
export interface Obstacle {
  readonly code: 'F1' | 'F2' | 'F3' | 'F4' | 'F5' | 'F6' | 'F7'
  readonly message: string
}

interface TableSize {
  readonly name: string
  readonly rows: number
  /** The table is too large to be counted within the time of a transaction. */
  readonly isEstimate: boolean
  readonly bytes: number
}

export interface PreflightReport {
  readonly release: string
  readonly newestMigration: string
  readonly encoding: string
  readonly tables: readonly TableSize[]
  readonly rows: number
  readonly accounts: Readonly<Record<string, number>>
  readonly hosts: readonly { readonly host: string; readonly accounts: number }[]
  readonly keyPairs: { readonly checked: number; readonly broken: number }
  readonly files: FileCount | undefined
  /** Undefined: the Redis of Sidekiq was not named. */
  readonly sidekiq: SidekiqJobs | undefined
  readonly findings: readonly InvalidRowFinding[]
  /** Checks that took longer than one transaction may take. */
  readonly notChecked: readonly UncheckedTable[]
  /** Applications that will not work as before. */
  readonly clients: readonly LimitedClients[]
  /** Undefined: the old database cannot be read. */
  readonly seconds: TakeOverTimes | undefined
  /** Bytes that the take-over still needs. Free ones are unknown on another server. */
  readonly disk: { readonly needed: number; readonly free: number | undefined }
  /** Named `blocks` in the JSON of the command. */
  readonly blocks: readonly Obstacle[]
}

export interface PreflightOptions {
  readonly uploads: string | undefined
  readonly shouldLockBrokenKeys: boolean
  readonly sidekiq: string | undefined
  readonly rate: number | undefined
}

interface Examined {
  readonly schema: SchemaState
  readonly disk: PreflightReport['disk']
  readonly keys: KeyPairs
  readonly obstacles: readonly Obstacle[]
}

/** Examines source and target, and changes nothing. */
export async function preflight(
  target: { readonly db: Knex; readonly config: Config },
  source: Source,
  options: PreflightOptions,
): Promise<PreflightReport> {
  const { config } = target
  const { schema, disk, keys, obstacles } = await examineObstacles(target, source, options)
  const head = {
    release: schema.release,
    newestMigration: schema.newest,
    encoding: await source.encoding(),
    disk,
    blocks: obstacles,
  }
  if (schema.fault !== undefined) return { ...head, ...NOTHING }
  const tables = await countTables(source)
  const isReadable =
    options.uploads !== undefined && !isRemoteUploads(options.uploads) && (await hasPictures(options.uploads))
  const counted = isReadable ? await countFiles(source, options.uploads, config.host) : undefined
  const { findings, notChecked } = await findInvalidRows(source, config.host)
  const signatures = await findInvalidSignatures(source)
  return {
    ...head,
    tables,
    rows: tables.reduce((sum, { rows }) => sum + rows, 0),
    accounts: await countAccounts(source),
    hosts: await listHosts(source),
    keyPairs: { checked: keys.checked, broken: keys.broken.length },
    files: counted?.files,
    sidekiq: options.sidekiq === undefined ? undefined : await findSidekiqJobs(options.sidekiq),
    findings: mergeFindings([
      ...findings,
      ...signatures.findings,
      ...findBrokenKeys(keys),
      ...(counted?.findings ?? []),
    ]),
    notChecked: [...notChecked, ...signatures.notChecked],
    clients: await findLimitedClients(source),
    seconds: await estimateTimes(source, tables, options.rate),
  }
}

/** Why source and target do not fit; without the counts of rows, which take a while. */
export async function examineObstacles(
  { db, config }: { readonly db: Knex; readonly config: Config },
  source: Source,
  { shouldLockBrokenKeys, uploads }: Pick<PreflightOptions, 'shouldLockBrokenKeys' | 'uploads'>,
): Promise<Examined> {
  const tables = await source.listTables()
  const schema = readSchemaState(await source.listVersions(), tables)
  const bytes = tables.reduce((sum, table) => sum + table.bytes, 0)
  const neededBytes = Math.max(0, Math.ceil(bytes * SPACE_FACTOR) - (await usedBytes(db)))
  const disk = { needed: neededBytes, free: await freeBytes(config) }
  const obstacles = await findTargetObstacles(db)
  if (disk.free !== undefined && disk.free < disk.needed) {
    obstacles.push({ code: 'F5', message: `The database needs ${disk.needed} bytes, and ${disk.free} are free.` })
  }
  if (uploads !== undefined && !isRemoteUploads(uploads) && !(await hasPictures(uploads))) {
    obstacles.push({
      code: 'F7',
      message: `There is no folder ${picturesFolder(uploads)} with the pictures of the old pod.`,
    })
  }
  if (uploads !== undefined && isRemoteUploads(uploads) && schema.fault === undefined) {
    const message = await findFaultOfUploads(uploads, config, source)
    if (message !== undefined) obstacles.push({ code: 'F7', message })
  }
  if (schema.fault !== undefined) {
    obstacles.unshift({ code: 'F3', message: `The old database cannot be read: ${schema.fault}.` })
    return { schema, disk, keys: { checked: 0, broken: [] }, obstacles }
  }
  const keys = await checkKeyPairs(source)
  const brokenKeyCount = shouldLockBrokenKeys ? 0 : keys.broken.filter(({ isClosed }) => !isClosed).length
  obstacles.push(...(await findSourceObstacles(source, config.host, brokenKeyCount)))
  return { schema, disk, keys, obstacles }
}

function findBrokenKeys({ broken }: KeyPairs): readonly InvalidRowFinding[] {
  if (broken.length === 0) return []
  const examples = broken.slice(0, 20).map(({ guid }) => guid)
  return [{ code: 'D18', table: 'users', count: broken.length, examples }]
}

const NOTHING = {
  tables: [],
  rows: 0,
  accounts: {},
  hosts: [],
  keyPairs: { checked: 0, broken: 0 },
  files: undefined,
  sidekiq: undefined,
  findings: [],
  notChecked: [],
  clients: [],
  seconds: undefined,
} as const

/** Why nothing may be copied into the target: it has accounts, or people, that do not come from this take-over. */
export async function findTargetObstacles(db: Knex): Promise<Obstacle[]> {
  const takeOver = await findTakeOver(db)
  if (wasPodOpened(takeOver)) {
    return [{ code: 'F4', message: 'This pod has been taken over and is open.' }]
  }
  if (takeOver !== undefined) return []
  const table = await queryRow<{ readonly exists: boolean }>(
    db,
    `select to_regclass('public.people') is not null as exists`,
  )
  if (!table.exists) return []
  const { users, people } = await queryRow<{ readonly users: number; readonly people: number }>(
    db,
    'select (select count(*)::int from users) as users, (select count(*)::int from people) as people',
  )
  if (users === 0 && people === 0) return []
  return [
    { code: 'F4', message: `The database of this pod has ${users} accounts and ${people} people: it must be empty.` },
  ]
}

/** Finds rows of the source that cannot be copied. */
async function findSourceObstacles(source: Source, host: string, brokenKeys: number): Promise<readonly Obstacle[]> {
  const obstacles: Obstacle[] = []
  const equal = await source.query<{ name: string }>(
    'select lower(username) as name from users group by 1 having count(*) > 1 order by 1 limit 20',
  )
  if (equal.length > 0) {
    obstacles.push({
      code: 'F1',
      message: `User names differ only in case: ${equal.map(({ name }) => name).join(', ')}.`,
    })
  }
  if (brokenKeys > 0) {
    obstacles.push({
      code: 'F2',
      message: `${brokenKeys} open accounts have no valid key pair (D18): --lock-broken-keys locks them.`,
    })
  }
  const [elsewhere] = await source.query<{ count: number }>(
    `select count(*)::int as count from people
     where owner_id is not null and closed_account is not true and split_part(lower(diaspora_handle), '@', 2) <> $1`,
    [host],
  )
  if (elsewhere !== undefined && elsewhere.count > 0) {
    obstacles.push({
      code: 'F2',
      message: `${elsewhere.count} local accounts have a handle at another host than this pod (D20).`,
    })
  }
  const encrypted = (await source.listTables())
    .find(({ name }) => name === 'users')
    ?.columns.filter((column) => column.startsWith('encrypted_otp_secret'))
  if (encrypted !== undefined && encrypted.length > 0) {
    const [row] = await source.query<{ count: number }>(
      'select count(*)::int as count from users where encrypted_otp_secret is not null',
    )
    if (row !== undefined && row.count > 0) {
      obstacles.push({
        code: 'F6',
        message: `${row.count} accounts have an encrypted second factor of a development version.`,
      })
    }
  }
  return obstacles
}

async function countTables(source: Source): Promise<PreflightReport['tables']> {
  const bytes = new Map((await source.listTables()).map((table) => [table.name, table.bytes]))
  const tableCounts = []
  for (const name of [...SOURCE_TABLES.map((table) => table.name), ...TABLES_LEFT_OUT]) {
    tableCounts.push({ name, ...(await source.countRows(name)), bytes: bytes.get(name) ?? 0 })
  }
  return tableCounts
}

async function countAccounts(source: Source): Promise<Readonly<Record<string, number>>> {
  const hasFactors = (await source.listTables()).some(
    ({ name, columns }) => name === 'users' && columns.includes('otp_required_for_login'),
  )
  const [counts = {}] = await source.query<Record<string, number>>(`
    select count(*)::int as "all", count(*) filter (where people.closed_account)::int as closed,
      count(*) filter (where users.locked_at is not null and people.closed_account is not true)::int as locked,
      ${hasFactors ? 'count(*) filter (where users.otp_required_for_login)' : '0'}::int as "secondFactor"
    from users left join people on people.owner_id = users.id`)
  return counts
}

async function listHosts(source: Source): Promise<PreflightReport['hosts']> {
  return source.query(`
    select split_part(lower(diaspora_handle), '@', 2) as host, count(*)::int as accounts
    from people where owner_id is not null group by 1 order by 2 desc, 1 limit 20`)
}

/** Bytes that a take-over which has begun already uses of its space. */
async function usedBytes(db: Knex): Promise<number> {
  if ((await findTakeOver(db)) === undefined) return 0
  const { bytes } = await queryRow<{ readonly bytes: number }>(
    db,
    'select pg_database_size(current_database())::float as bytes',
  )
  return bytes
}

/** Free bytes where the embedded database is; unknown for another server. */
async function freeBytes({ databaseUrl, dataDir }: Config): Promise<number | undefined> {
  if (databaseUrl !== undefined) return undefined
  const fileSystem = await statfs(dataDir).catch(() => undefined)
  return fileSystem && fileSystem.bavail * fileSystem.bsize
}
