import type { JobPage, ListedJobs } from '../../domain/operations/queues.js'
import type { JobPosition } from '../../jobs/queues/job-places.js'

/** `a`: after a job, `b`: before it; then its place, its end, and its id. */
export const JOB_CURSOR = /^([ab])([0-9]{1,9})\.([0-9]{0,15})\.([\w-]{1,400})$/

/** The page of a list of jobs that a cursor names; undefined: its beginning. */
export function readJobPage(groups: RegExpExecArray | undefined, limit: number): JobPage {
  const [, side, place, end, id = ''] = groups ?? []
  if (side === undefined) return { limit }
  const position: JobPosition = {
    id: Buffer.from(id, 'base64url').toString(),
    place: Number(place),
    finishedAt: end === '' ? null : Number(end),
  }
  return { [side === 'a' ? 'after' : 'before']: position, limit }
}

/** The cursors of the neighbouring pages. */
export function jobCursors({ first, last }: Pick<ListedJobs, 'first' | 'last'>) {
  const cursorAt = (side: 'a' | 'b', { id, place, finishedAt }: JobPosition) =>
    `${side}${place}.${finishedAt ?? ''}.${Buffer.from(id).toString('base64url')}`
  return { previous: first && cursorAt('b', first), next: last && cursorAt('a', last) }
}
