import type { Services } from '../../services/services.js'
import { stateByOwner } from '../../throttling/state-by-owner.js'
import { groupCommit } from '../group-commit.js'
import type { OutboxJob } from '../queues/add-jobs.js'
import { afterCommit } from './after-commit.js'

const HAND_OVER_TIMEOUT_MS = 500
/** The client builds a bulk request synchronously: some 40 ms for this number of jobs. */
const HAND_OVER_BATCH_SIZE = 500

/** Runs or adds the jobs of rows that this transaction has written after its commit; the sweeper adds lost ones. */
export const handOverAfterCommit = afterCommit<OutboxJob>(({ jobs }, rows) => {
  const handOver = handOverOf(jobs, () => openHandOver(jobs))
  const others = jobs.localRuns.start(rows, (row) => void handOver([row]).catch(() => {}))
  return others.length === 0 ? Promise.resolve() : handOver(others)
})

type HandOver = (rows: readonly OutboxJob[]) => Promise<void>

const handOverOf = stateByOwner<Services['jobs'], HandOver>()

/** Rows committed during a hand-over go together in the next one: ten jobs cost PostgreSQL three times as much as one. */
function openHandOver(jobs: Services['jobs']): HandOver {
  return groupCommit({ maxConcurrent: 1, maxItems: HAND_OVER_BATCH_SIZE }, (rows: readonly OutboxJob[]) =>
    jobs.handOver(rows, { within: HAND_OVER_TIMEOUT_MS }),
  )
}
