import type { JobState, QueueInspection } from './inspect-queues.js'
import type { QueueName } from './queue-names.js'

/** A job of a list, and where the list had it. */
export interface JobPosition {
  readonly id: string
  readonly place: number
  /** The end of a failed job, in milliseconds since 1970. */
  readonly finishedAt: number | null
}

interface JobList {
  readonly queue: QueueName
  readonly state: JobState
}

type Inspection = Pick<QueueInspection, 'list' | 'listIds' | 'stateOf'>

/** Jobs whose ids are read at a time. */
const IDS_READ = 1_000
/** Failed jobs with the same end that are read at a time. */
const FAILED_READ = 100

/**
 * Finds the place of a job in its list now. For a job that has left the list, it is the place of the job that would follow: of failed
 * jobs by their end; of waiting jobs the first place, because they leave the list in its order; of active and delayed jobs, which leave
 * it in any order, the place where the job was.
 */
export async function findPlace(
  jobs: Inspection,
  list: JobList,
  position: JobPosition,
): Promise<{ readonly place: number; readonly isThere: boolean }> {
  if (list.state === 'failed') return findFailedPlace(jobs, list.queue, position)
  const place = (await jobs.stateOf(list.queue, position.id)) === list.state ? await search(jobs, list, position) : -1
  if (place !== -1) return { place, isThere: true }
  return { place: list.state === 'waiting' ? 0 : position.place, isThere: false }
}

/** Jobs before a job leave the list: it moves to the front. Priorities may move it back. */
async function search(jobs: Inspection, { queue, state }: JobList, { id, place }: JobPosition): Promise<number> {
  const idsFrom = (from: number) => jobs.listIds(queue, state, from, from + IDS_READ)
  for (let end = place + 1; end > 0; end -= IDS_READ) {
    const from = Math.max(0, end - IDS_READ)
    const index = (await idsFrom(from)).indexOf(id)
    if (index !== -1) return from + index
  }
  for (let from = place + 1; ; from += IDS_READ) {
    const ids = await idsFrom(from)
    const index = ids.indexOf(id)
    if (index !== -1) return from + index
    if (ids.length < IDS_READ) return -1
  }
}

/** A binary search: the list is in the order of the ends, the latest first. */
async function findFailedPlace(jobs: Inspection, queue: QueueName, { id, place, finishedAt }: JobPosition) {
  const endOf = async (at: number) => (await jobs.list(queue, 'failed', at, 1))[0]?.finishedAt ?? undefined
  const end = finishedAt ?? 0
  let [first, last] = [0, place + 1]
  for (let step = 1; ((await endOf(last)) ?? -1) > end; step *= 2) [first, last] = [last, last + step * IDS_READ]
  while (first < last) {
    const middle = Math.floor((first + last) / 2)
    if (((await endOf(middle)) ?? -1) > end) first = middle + 1
    else last = middle
  }
  for (let from = first; ; from += FAILED_READ) {
    const read = await jobs.list(queue, 'failed', from, FAILED_READ)
    const sameEnd = read.filter(({ finishedAt: each }) => each === end)
    const index = sameEnd.findIndex((job) => job.id === id)
    if (index !== -1) return { place: from + index, isThere: true }
    const after = from + sameEnd.length
    if (sameEnd.length < FAILED_READ) return { place: Math.min(Math.max(place, first), after), isThere: false }
  }
}
