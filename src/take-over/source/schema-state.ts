import type { FoundTable } from './source.js'
import { SOURCE_TABLES } from './source-tables.js'

/** Releases by their newest migration. Later releases brought migrations with older numbers. */
const RELEASES: readonly (readonly [version: string, release: string])[] = [
  ['20170813222333', '0.7.0'],
  ['20171017221434', '0.7.1'],
  ['20181004003638', '0.7.5'],
  ['20181227235201', '0.7.9'],
  ['20190511150503', '0.7.11'],
  ['20190703231700', '0.7.13'],
  ['20211027230348', '0.7.16'],
  ['20230604015559', '0.9.0'],
  ['20260428000000', '0.10'],
]

/** Tables that releases since 0.7.0 have, and that the copy cannot do without. */
const LATER_TABLES: readonly string[] = ['account_migrations']

/** Columns that releases since 0.7.0 have gained; the copy has defaults for them. */
const LATER_COLUMNS: ReadonlySet<string> = new Set([
  'notifications.guid',
  'account_migrations.completed_at',
  'account_migrations.signature',
  'account_migrations.remote_photo_path',
  'users.plain_otp_secret',
  'users.consumed_timestep',
  'users.otp_required_for_login',
  'users.otp_backup_codes',
])

export interface SchemaState {
  readonly release: string
  readonly newest: string
  /** Why the schema cannot be taken over; undefined: it can. */
  readonly fault: string | undefined
}

/** Determines the release of a schema, and whether it can be taken over, by its versions and by the tables and columns that are read. */
export function readSchemaState(versions: readonly string[], tables: readonly FoundTable[]): SchemaState {
  const newest =
    versions
      .filter((version) => /^\d{14}$/.test(version))
      .sort()
      .at(-1) ?? '0'
  const release = RELEASES.findLast(([version]) => version <= newest)?.[1] ?? 'older than 0.7.0'
  const columns = new Set(tables.flatMap(({ name, columns: names }) => names.map((column) => `${name}.${column}`)))
  const missing = SOURCE_TABLES.filter(({ name }) => !LATER_TABLES.includes(name)).flatMap((table) =>
    Object.keys(table.columns)
      .map((column) => `${table.name}.${column}`)
      .filter((column) => !columns.has(column) && !LATER_COLUMNS.has(column)),
  )
  const [oldestKnown = ''] = RELEASES[0] ?? []
  const [newestKnown = ''] = RELEASES.at(-1) ?? []
  const fault =
    newest > newestKnown
      ? `the migration ${newest} is newer than this program`
      : newest < oldestKnown
        ? 'the schema is older than that of diaspora* 0.7.0'
        : missing.length > 0
          ? `the schema lacks ${missing.slice(0, 5).join(', ')}`
          : undefined
  return { release, newest, fault }
}
