import type { Knex } from 'knex'
import { type DatabaseLimits, openDatabase, queryPrepared } from './database.js'

/** A streaming replica of the database. Lists are read from it while it answers and is up to date. */
export interface ReadReplica {
  /** Undefined: the replica is not in use, or has not replayed this WAL position of the reader. */
  databaseFor(writtenUpTo: number | undefined): Knex | undefined
  /** Reports a failed read. The replica is not used for `responseTimeoutMs`. */
  reportFailure(error: unknown): void
  status(): ReplicaStatus
  close(): Promise<void>
}

interface ReplicaStatus {
  readonly lists: Readonly<Record<'replica' | 'primary' | 'failed', number>>
  /** The age of its data in seconds. Undefined: the replica is not in use. */
  readonly age: number | undefined
}

interface ReplicaLimits extends DatabaseLimits {
  readonly checkIntervalMs: number
  /** Time without an answer after which the replica is not used. */
  readonly responseTimeoutMs: number
  /** Lists are never older than this. */
  readonly maxAgeMs: number
}

interface ReplicaOptions {
  readonly primaryUrl: string
  readonly replicaUrl: string
  readonly applicationName: string
  readonly limits: ReplicaLimits
  /** Called when the replica comes into use or goes out of use, with the reason. */
  readonly report: (message: string, error?: unknown) => void
}

/** A WAL position of the primary and when it was read. */
interface PositionSample {
  readonly at: number
  readonly position: number
}

/**
 * Opens a replica and compares its WAL position with that of the primary a few times a second. The age of its data is the time since
 * the newest sampled position that it has replayed. Positions only grow, so the last comparison stays valid until the next one.
 */
export function openReadReplica({
  primaryUrl,
  replicaUrl,
  applicationName,
  limits,
  report,
}: ReplicaOptions): ReadReplica {
  const lists = openDatabase({ url: replicaUrl, applicationName, ...limits })
  // Separate connections: when all others are in use, the replica is needed most.
  const watchOptions = { ...limits, applicationName: `${applicationName} (replica)`, pool: 1 }
  const primary = openDatabase({ url: primaryUrl, ...watchOptions })
  const replica = openDatabase({ url: replicaUrl, ...watchOptions })
  const counts = { replica: 0, primary: 0, failed: 0 }
  let replayedPosition = 0
  /** The replica has everything written before this time. */
  let upToDateAt = Number.NEGATIVE_INFINITY
  let answeredAt = Number.NEGATIVE_INFINITY
  let unusedUntil = Number.NEGATIVE_INFINITY
  let samples: readonly PositionSample[] = []
  let comparison: Promise<void> | undefined
  let isReportedInUse: boolean | undefined
  let lastError: unknown

  async function compare(): Promise<void> {
    try {
      const now = Date.now()
      const positions = await compareReplicaPosition(primary, replica)
      samples = [...samples.filter(({ at }) => at > now - limits.maxAgeMs), { at: now, position: positions.written }]
      upToDateAt = samples.findLast(({ position }) => position <= positions.replayed)?.at ?? upToDateAt
      replayedPosition = positions.replayed
      answeredAt = Date.now()
      lastError = undefined
    } catch (error) {
      lastError = error
    }
  }

  function isInUse(): boolean {
    const now = Date.now()
    return now >= unusedUntil && now - answeredAt <= limits.responseTimeoutMs && now - upToDateAt <= limits.maxAgeMs
  }

  function reportChange(): void {
    const isUsed = isInUse()
    if (isUsed === isReportedInUse) return
    isReportedInUse = isUsed
    if (isUsed) report('lists are read from the replica')
    else report('lists are read from the primary: the replica does not answer or lags behind', lastError)
  }

  const timer = setInterval(() => {
    comparison ??= compare().finally(() => {
      comparison = undefined
      reportChange()
    })
    if (isReportedInUse !== undefined) reportChange() // a comparison may take long
  }, limits.checkIntervalMs)
  timer.unref()

  return {
    databaseFor(writtenUpTo = 0) {
      const isUsable = isInUse() && writtenUpTo <= replayedPosition
      counts[isUsable ? 'replica' : 'primary'] += 1
      return isUsable ? lists : undefined
    },
    reportFailure(error) {
      counts.failed += 1
      lastError = error
      unusedUntil = Date.now() + limits.responseTimeoutMs
      reportChange()
    },
    status: () => ({ lists: { ...counts }, age: isInUse() ? (Date.now() - upToDateAt) / 1_000 : undefined }),
    async close() {
      clearInterval(timer)
      await comparison
      await Promise.all([lists.destroy(), primary.destroy(), replica.destroy()])
    },
  }
}

/** The WAL positions of both in bytes. Throws if the second database is not a replica of the first. */
export async function compareReplicaPosition(
  primary: Knex,
  replica: Knex,
): Promise<{ readonly written: number; readonly replayed: number }> {
  const [primaryRow] = await queryPrepared<{ system: string; flushed: number }>(
    primary,
    'primary-position',
    PRIMARY_POSITION_SQL,
    [],
  )
  const [replicaRow] = await queryPrepared<{ system: string; replayed: number | null }>(
    replica,
    'replica-position',
    REPLICA_POSITION_SQL,
    [],
  )
  if (primaryRow === undefined || replicaRow === undefined) throw new Error('The database did not report its position.')
  if (replicaRow.replayed === null) throw new Error('The database accepts writes, so it is not a replica.')
  if (replicaRow.system !== primaryRow.system) throw new Error('The database is the replica of another database.')
  return { written: primaryRow.flushed, replayed: replicaRow.replayed }
}

const SYSTEM_SQL = `(select system_identifier::text from pg_control_system()) as system`
/** The flushed position: only flushed data is sent to replicas, and the rest may stay unflushed until the next write. */
const PRIMARY_POSITION_SQL = `select ${SYSTEM_SQL}, pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint as flushed`
const REPLICA_POSITION_SQL = `
  select ${SYSTEM_SQL}, case when pg_is_in_recovery() then pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint end as replayed`
