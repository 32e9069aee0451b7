import type { Knex } from 'knex'
import { queryPrepared, queryRows } from '../database/database.js'
import type { SlowStatement } from '../database/slow-statements.js'
import type { PictureStores } from '../photos/open-pictures.js'
import type { RequestedQueueState } from './queue-controls.js'

/** Seconds after the last heartbeat until a process counts as gone. */
const GONE_AFTER_SECONDS = 30

export interface ProcessStatus {
  readonly rssBytes: number
  readonly heapBytes: number
  /** Utilisation of the event loop since the last heartbeat. */
  readonly busyPercent: number
  /** Milliseconds by which 99 of 100 samples of the event loop were late at most; missing for processes of an earlier version. */
  readonly loopLagMs?: number
  /** Crypto threads; missing for processes of an earlier version. */
  readonly threads?: ThreadLoad
  readonly queues: readonly string[]
  readonly jobs: readonly RunningJob[]
  /** The process belongs to an isolated copy. */
  readonly isolated?: true
  /** Missing for processes of an earlier version. */
  readonly pictures?: PictureStores
  /** Missing: no other pod has answered. */
  readonly podClock?: PodClock
  /** Missing: none in the last hour. */
  readonly slowStatements?: readonly SlowStatement[]
}

export interface ThreadLoad {
  readonly busy: number
  /** Maximum number of threads. */
  readonly max: number
  /** Tasks that wait for a thread. */
  readonly waiting: number
}

/** The clocks of other pods, by their last answers. */
export interface PodClock {
  /** Seconds that they are ahead of this machine, the median. */
  readonly offset: number
  readonly answers: number
}

export interface RunningJob {
  readonly queue: string
  readonly name: string
  readonly attempt: number
  readonly since: string
}

export interface PodProcess {
  readonly id: string
  readonly kind: string
  readonly host: string
  readonly pid: number
  readonly version: string
  readonly startedAt: Date
  readonly seenAt: Date
  readonly facts: ProcessStatus
}

/** Writes a heartbeat, and returns what operators want of the queues: one statement, because every process repeats it. */
export async function recordHeartbeat(
  db: Knex,
  { id, kind, host, pid, version, startedAt, facts }: Omit<PodProcess, 'seenAt'>,
): Promise<readonly Pick<RequestedQueueState, 'queue' | 'state'>[]> {
  return queryPrepared(db, 'heartbeat', HEARTBEAT_SQL, [id, kind, host, pid, version, startedAt, JSON.stringify(facts)])
}

export async function deleteProcess(db: Knex, id: string): Promise<void> {
  await db('processes').where({ id }).delete()
}

/** Lists the running processes; those that ended without notice are left out after 30 seconds. */
export async function listProcesses(db: Knex): Promise<readonly PodProcess[]> {
  return queryRows<PodProcess>(
    db,
    `select id, kind, host, pid, version, started_at as "startedAt", seen_at as "seenAt", facts
     from processes where seen_at > now() - make_interval(secs => ?) order by kind, host, pid`,
    [GONE_AFTER_SECONDS],
  )
}

/**
 * The last heartbeat on this database of a process that is not one of an isolated copy, in milliseconds; undefined: none of them may run.
 * An empty database has no such table.
 */
export async function findHeartbeatOfOriginal(db: Knex): Promise<number | undefined> {
  if (!(await db.schema.hasTable('processes'))) return undefined
  const originals = (await listProcesses(db)).filter(({ facts }) => facts.isolated !== true)
  return originals.length === 0 ? undefined : Math.max(...originals.map(({ seenAt }) => seenAt.getTime()))
}

const HEARTBEAT_SQL = `
  with beat as (
    insert into processes (id, kind, host, pid, version, started_at, seen_at, facts)
    values ($1, $2, $3, $4, $5, $6, now(), $7)
    on conflict (id) do update set seen_at = excluded.seen_at, facts = excluded.facts
  ), gone as (
    delete from processes where seen_at < now() - interval '10 minutes'
  )
  select queue, case when until <= now() then 'running' else state end as state from queue_controls`
