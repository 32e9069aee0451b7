import type { OutboxJob } from '../queues/add-jobs.js'
import type { QueueName } from '../queues/queue-names.js'
import { type DirectDeliveries, openDirectDeliveries } from './direct-deliveries.js'

/** Runs the work of one outbox row; rejects when a job of the queue has to do it instead. */
export type DirectRun = (row: Pick<OutboxJob, 'id' | 'data' | 'trace'>) => Promise<void>

interface DirectRunOptions {
  readonly queue: QueueName
  readonly name: string
  /** Rows that may run at a time; the others get jobs. */
  readonly atOnce: number
  readonly run: DirectRun
}

/**
 * Runs outbox rows in the process that has written them, right after their commit. A job of the queue costs five statements or
 * commands more than the work of such a row. When the process dies, the sweeper adds a job for the row.
 */
export interface DirectRuns {
  /** Deliveries have no outbox rows. */
  readonly deliveries: Pick<DirectDeliveries, 'serve' | 'start'>
  /** Runs rows of this queue and name from now on, until the returned function is called. */
  serve(options: DirectRunOptions): () => void
  /** From now on, rows of these queues get jobs, and rows of all others run here. */
  stopFor(queues: readonly QueueName[]): void
  /** Starts the rows for which there is capacity, and returns the others. A row that fails is passed to `onFailure`. */
  start(rows: readonly OutboxJob[], onFailure: (row: OutboxJob) => void): readonly OutboxJob[]
}

interface Server extends DirectRunOptions {
  running: number
}

export function openDirectRuns(): DirectRuns {
  const servers = new Map<string, Server>()
  const deliveries = openDirectDeliveries()
  let stopped: ReadonlySet<QueueName> = new Set()

  async function runRow(server: Server, row: OutboxJob, onFailure: (row: OutboxJob) => void): Promise<void> {
    try {
      await server.run(row)
    } catch {
      onFailure(row)
    } finally {
      server.running -= 1
    }
  }

  return {
    deliveries,

    serve(options) {
      const key = keyOf(options)
      servers.set(key, { ...options, running: 0 })
      return () => void servers.delete(key)
    },

    stopFor(queues) {
      stopped = new Set(queues)
      deliveries.stop(stopped.has('outbound'))
    },

    start(rows, onFailure) {
      return rows.filter((row) => {
        const mayRun = row.delay === undefined && !stopped.has(row.queue)
        const server = mayRun ? servers.get(keyOf(row)) : undefined
        if (server === undefined || server.running >= server.atOnce) return true
        server.running += 1
        void runRow(server, row, onFailure)
        return false
      })
    },
  }
}

function keyOf({ queue, name }: Pick<OutboxJob, 'queue' | 'name'>): string {
  return `${queue} ${name}`
}
