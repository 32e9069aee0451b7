import type { OutboxRow } from '../queues/add-jobs.js'
import type { QueueName } from '../queues/queue-names.js'
import { type InProcessDeliveries, openInProcessDeliveries } from './in-process-deliveries.js'

/** Runs the work of one outbox row; rejects when a job of the queue has to do it instead. */
export type InProcessRun = (row: Pick<OutboxRow, 'id' | 'data' | 'trace'>) => Promise<void>

interface InProcessRunOptions {
  readonly queue: QueueName
  readonly name: string
  /** Rows that may run at a time; the others get jobs. */
  readonly maxConcurrent: number
  readonly run: InProcessRun
}

/**
 * Runs outbox rows in the process that has written them, right after their commit. A job of the queue costs five statements or
 * commands more than the work of such a row. When the process dies, the sweeper adds a job for the row.
 */
export interface InProcessRuns {
  /** Deliveries have no outbox rows. */
  readonly deliveries: Pick<InProcessDeliveries, 'serve' | 'start'>
  /** Runs rows of this queue and name from now on, until the returned function is called. */
  serve(options: InProcessRunOptions): () => void
  /** Stops runs in this process for these queues: their rows get jobs. Rows of all other queues run here. */
  stopFor(queues: readonly QueueName[]): void
  /** Starts the rows for which there is capacity, and returns the others. A row that fails is passed to `onFailure`. */
  start(rows: readonly OutboxRow[], onFailure: (row: OutboxRow) => void): readonly OutboxRow[]
}

interface Server extends InProcessRunOptions {
  running: number
}

export function openInProcessRuns(): InProcessRuns {
  const servers = new Map<string, Server>()
  const deliveries = openInProcessDeliveries()
  let stoppedQueues: ReadonlySet<QueueName> = new Set()

  async function runRow(server: Server, row: OutboxRow, onFailure: (row: OutboxRow) => void): Promise<void> {
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
      stoppedQueues = new Set(queues)
      deliveries.stop(stoppedQueues.has('outbound'))
    },

    start(rows, onFailure) {
      return rows.filter((row) => {
        const mayRun = row.delay === undefined && !stoppedQueues.has(row.queue)
        const server = mayRun ? servers.get(keyOf(row)) : undefined
        if (server === undefined || server.running >= server.maxConcurrent) return true
        server.running += 1
        void runRow(server, row, onFailure)
        return false
      })
    },
  }
}

function keyOf({ queue, name }: Pick<OutboxRow, 'queue' | 'name'>): string {
  return `${queue} ${name}`
}
