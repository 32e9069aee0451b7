import type { Knex } from 'knex'
import { type DatabaseLimits, openDatabase, queryPrepared } from './database.js'

/** A streaming replica of the database, from which lists are read as long as it is good for that. */
export interface ReadReplica {
  /** Undefined: it has not come as far as somebody has already, or is not to be used at all. */
  databaseFor(writtenUpTo: number | undefined): Knex | undefined
  /** A list could not be read from it; nobody asks it for the next moment. */
  failed(error: unknown): void
  facts(): ReplicaFacts
  close(): Promise<void>
}

interface ReplicaFacts {
  readonly lists: Readonly<Record<'replica' | 'primary' | 'failed', number>>
  /** Seconds that what it shows may be old; undefined: it is not used. */
  readonly age: number | undefined
}

interface ReplicaLimits extends DatabaseLimits {
  readonly checkIntervalMs: number
  /** One that has not answered for so long is not asked for lists. */
  readonly responseTimeoutMs: number
  /** Lists are never older. */
  readonly maxAgeMs: number
}

interface ReplicaOptions {
  readonly primaryUrl: string
  readonly replicaUrl: string
  readonly applicationName: string
  readonly limits: ReplicaLimits
  /** Says that it begins or ceases to be used, and why. */
  readonly tell: (sentence: string, error?: unknown) => void
}

/** In the log of the primary. */
interface Moment {
  readonly at: number
  readonly position: number
}

/**
 * Looks a few times a second how far both have come: the replica is as old as the last moment of which it has everything. It
 * only ever gets further, so what it had at the last look it still has.
 */
export function openReadReplica({
  primaryUrl,
  replicaUrl,
  applicationName,
  limits,
  tell,
}: ReplicaOptions): ReadReplica {
  const lists = openDatabase({ url: replicaUrl, applicationName, ...limits })
  // Connections of its own: where all others are taken, a replica is needed most.
  const watch = { ...limits, applicationName: `${applicationName} (replica)`, pool: 1 }
  const primary = openDatabase({ url: primaryUrl, ...watch })
  const replica = openDatabase({ url: replicaUrl, ...watch })
  const counts = { replica: 0, primary: 0, failed: 0 }
  let replayed = 0
  /** It has everything that was written until then. */
  let freshAt = Number.NEGATIVE_INFINITY
  let heardAt = Number.NEGATIVE_INFINITY
  let leftUntil = Number.NEGATIVE_INFINITY
  let moments: readonly Moment[] = []
  let looking: Promise<void> | undefined
  let wasUsed: boolean | undefined
  let trouble: unknown

  async function look(): Promise<void> {
    try {
      const now = Date.now()
      const found = await compareReplicaPosition(primary, replica)
      moments = [...moments.filter(({ at }) => at > now - limits.maxAgeMs), { at: now, position: found.written }]
      freshAt = moments.findLast(({ position }) => position <= found.replayed)?.at ?? freshAt
      replayed = found.replayed
      heardAt = Date.now()
      trouble = undefined
    } catch (error) {
      trouble = error
    }
  }

  function isUsed(): boolean {
    const now = Date.now()
    return now >= leftUntil && now - heardAt <= limits.responseTimeoutMs && now - freshAt <= limits.maxAgeMs
  }

  function tellChange(): void {
    if (isUsed() === wasUsed) return
    wasUsed = isUsed()
    if (wasUsed) tell('lists are read from the replica')
    else tell('lists are read from the primary: the replica is away or too late', trouble)
  }

  const timer = setInterval(() => {
    looking ??= look().finally(() => {
      looking = undefined
      tellChange()
    })
    if (wasUsed !== undefined) tellChange() // a look may take long
  }, limits.checkIntervalMs)
  timer.unref()

  return {
    databaseFor(writtenUpTo = 0) {
      const isGoodFor = isUsed() && writtenUpTo <= replayed
      counts[isGoodFor ? 'replica' : 'primary'] += 1
      return isGoodFor ? lists : undefined
    },
    failed(error) {
      counts.failed += 1
      trouble = error
      leftUntil = Date.now() + limits.responseTimeoutMs
      tellChange()
    },
    facts: () => ({ lists: { ...counts }, age: isUsed() ? (Date.now() - freshAt) / 1_000 : undefined }),
    async close() {
      clearInterval(timer)
      await looking
      await Promise.all([lists.destroy(), primary.destroy(), replica.destroy()])
    },
  }
}

/** How far both have come in the log of the primary, in bytes. Throws what keeps the other one from being its replica. */
export async function compareReplicaPosition(
  primary: Knex,
  replica: Knex,
): Promise<{ readonly written: number; readonly replayed: number }> {
  const [own] = await queryPrepared<{ system: string; flushed: number }>(primary, 'primary-position', ofPrimary, [])
  const [its] = await queryPrepared<{ system: string; replayed: number | null }>(
    replica,
    'replica-position',
    ofReplica,
    [],
  )
  if (own === undefined || its === undefined) throw new Error('It says nothing.')
  if (its.replayed === null) throw new Error('It takes writes itself, so it is no replica.')
  if (its.system !== own.system) throw new Error('It is the replica of another database.')
  return { written: own.flushed, replayed: its.replayed }
}

const SYSTEM = `(select system_identifier::text from pg_control_system()) as system`
/** Replicas get what is flushed; the rest may stay where it is until somebody writes. */
const ofPrimary = `select ${SYSTEM}, pg_wal_lsn_diff(pg_current_wal_flush_lsn(), '0/0')::bigint as flushed`
const ofReplica = `
  select ${SYSTEM}, case when pg_is_in_recovery() then pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::bigint end as replayed`
