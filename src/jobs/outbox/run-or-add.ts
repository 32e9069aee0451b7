import { groupCommit } from '../../concurrency/group-commit.js'
import { stateByOwner } from '../../concurrency/state-by-owner.js'
import type { Services } from '../../services/services.js'
import type { OutboxRow } from '../queues/add-jobs.js'
import { afterCommit } from './after-commit.js'

const ADDED_WITHIN_MS = 500
/** The client builds a bulk request synchronously: some 40 ms for this number of jobs. */
const ADD_BATCH_SIZE = 500

/** Runs or adds the jobs of rows that this transaction has written after its commit; the sweeper adds lost ones. */
export const runOrAddAfterCommit = afterCommit<OutboxRow>(({ jobs }, rows) => {
  const add = addingOf(jobs, () => openAdding(jobs))
  const remainingRows = jobs.inProcessRuns.start(rows, (row) => void add([row]).catch(() => {}))
  return remainingRows.length === 0 ? Promise.resolve() : add(remainingRows)
})

type AddRows = (rows: readonly OutboxRow[]) => Promise<void>

const addingOf = stateByOwner<Services['jobs'], AddRows>()

/** Rows committed while others are being added go together in the next call: ten jobs cost PostgreSQL three times as much as one. */
function openAdding(jobs: Services['jobs']): AddRows {
  return groupCommit({ maxConcurrent: 1, maxItems: ADD_BATCH_SIZE }, (rows: readonly OutboxRow[]) =>
    jobs.addOutboxRows(rows, { withinMs: ADDED_WITHIN_MS }),
  )
}
