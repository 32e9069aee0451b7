import type { AnyJob } from '../src/jobs/definitions.js'
import { groupCommit } from '../src/jobs/group-commit.js'
import type { DirectRun } from '../src/jobs/outbox/direct-runs.js'
import type { OutboxRowOf } from '../src/jobs/outbox/outbox.js'
import type { Pod } from '../src/pod/pod.js'
import { withDeadline } from './deadline.js'
import { openGroupSpacing, type Spacing } from './group-spacing.js'
import type { InboundLoad } from './inbound-load.js'

/** Work of outbox rows that needs no job in the process that has written the rows. */
export interface DirectHandler {
  readonly job: AnyJob
  /** Rows that may run at a time; the others get jobs. */
  readonly atOnce: number
  open(pod: Pod, limits: DirectLimits): DirectRun
}

/** Deliveries that need no job in the process that has written them. */
export interface DirectDelivery {
  /** Pods that may be delivered to at a time; the others get jobs. */
  readonly atOnce: number
  run(pod: Pod, podId: number, signal: AbortSignal): Promise<void>
}

interface DirectLimits {
  /** Milliseconds a run has. */
  readonly deadline: number
  /** The process ends: rows no longer wait for others. */
  readonly ending: AbortSignal
  /** Running rows are aborted. */
  readonly stopping: AbortSignal
  readonly load: InboundLoad
}

interface Together<Data> {
  /** Rows of a group. */
  readonly items: number
  /** Not set: a row starts a group as soon as no other one runs. */
  readonly spacing?: Spacing
  /** While a burst of received messages is stored, rows wait. */
  readonly afterInbound?: boolean
  /** Work of a group, which is limited as well; a row with more has a group of its own. Not set: no limit, and each row counts as one. */
  readonly work?: { readonly atMost: number; of(data: Data): number }
}

/** Runs rows that are written meanwhile together, with one call. If it fails, each of them gets a job. */
export function runTogether<Data>(
  { items, spacing, afterInbound = false, work }: Together<Data>,
  handleAll: (pod: Pod, rows: readonly OutboxRowOf<Data>[]) => Promise<void>,
): DirectHandler['open'] {
  return (pod, { deadline, ending, stopping, load }) => {
    const sizeOf = ({ data }: OutboxRowOf<Data>) => work?.of(data) ?? 1
    const run = groupCommit(
      { atOnce: 1, items, size: work?.atMost ?? items, sizeOf },
      (rows: readonly OutboxRowOf<Data>[]) => withDeadline(deadline, stopping, () => handleAll(pod, rows)),
    )
    const untilGroup = spacing && openGroupSpacing(spacing, ending)
    return async ({ id, data }) => {
      const row = { id, data: data as Data } // the data belongs to the name of the row
      await untilGroup?.(sizeOf(row))
      if (afterInbound) await load.untilLow(ending)
      await run([row])
    }
  }
}
