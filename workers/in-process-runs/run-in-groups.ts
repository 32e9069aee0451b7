import { groupCommit } from '../../src/concurrency/group-commit.js'
import type { AnyJob } from '../../src/jobs/definitions.js'
import type { InProcessRun } from '../../src/jobs/in-process-runs/in-process-runs.js'
import type { OutboxRowOf } from '../../src/jobs/outbox/job-groups.js'
import type { Services } from '../../src/services/services.js'
import { withDeadline } from '../deadline.js'
import type { InboundLoad } from '../inbound-load.js'
import { openGroupSpacing, type Spacing } from './group-spacing.js'

/** Work of outbox rows that needs no job in the process that has written the rows. */
export interface InProcessHandler {
  readonly job: AnyJob
  /** Rows that may run at a time; the others get jobs. */
  readonly maxConcurrent: number
  open(services: Services, limits: InProcessLimits): InProcessRun
}

/** Deliveries that need no job in the process that has written them. */
export interface InProcessDelivery {
  /** Pods that may be delivered to at a time; the others get jobs. */
  readonly maxConcurrent: number
  run(services: Services, podId: number, signal: AbortSignal): Promise<void>
}

export interface InProcessLimits {
  /** Milliseconds a run has. */
  readonly timeoutMs: number
  /** The process ends: rows no longer wait for others. */
  readonly stopping: AbortSignal
  /** Running rows are aborted. */
  readonly abortSignal: AbortSignal
  readonly load: InboundLoad
}

interface GroupLimits<Data> {
  /** Rows of a group. */
  readonly maxItems: number
  /** Not set: a row starts a group as soon as no other one runs. */
  readonly spacing?: Spacing
  /** While a burst of received messages is stored, rows wait. */
  readonly afterInbound?: boolean
  /** The work of a group is limited too; a row with more work has a group of its own. Not set: no limit, and each row counts as one. */
  readonly work?: { readonly max: number; of(data: Data): number }
}

/** Runs rows that are written in the meantime together, with one call. If it fails, each of them gets a job. */
export function runInGroups<Data>(
  { maxItems, spacing, afterInbound = false, work }: GroupLimits<Data>,
  handleAll: (services: Services, rows: readonly OutboxRowOf<Data>[]) => Promise<void>,
): InProcessHandler['open'] {
  return (services, { timeoutMs, stopping, abortSignal, load }) => {
    const sizeOf = ({ data }: OutboxRowOf<Data>) => work?.of(data) ?? 1
    const run = groupCommit(
      { maxConcurrent: 1, maxItems, maxSize: work?.max ?? maxItems, sizeOf },
      (rows: readonly OutboxRowOf<Data>[]) => withDeadline(timeoutMs, abortSignal, () => handleAll(services, rows)),
    )
    const untilGroup = spacing && openGroupSpacing(spacing, stopping)
    return async ({ id, data }) => {
      const row = { id, data: data as Data } // the data belongs to the name of the row
      await untilGroup?.(sizeOf(row))
      if (afterInbound) await load.untilLow(stopping)
      await run([row])
    }
  }
}
