import type { CasePage, CasePosition } from '../../persistence/moderation/cases.js'

/** `a`: after a case, `b`: before it; then its rank, reporters, time and number. */
export const CASE_CURSOR = /^([ab])([0-2])\.([0-9]{1,9})\.([0-9]{1,15})\.([0-9]{1,15})$/

/** The page of a list of cases that a cursor names; undefined: its beginning. */
export function readCasePage(groups: RegExpExecArray | undefined, limit: number): CasePage {
  const [, side, rank, reporterCount, time, id] = groups ?? []
  if (side === undefined) return { limit }
  const position: CasePosition = {
    rank: Number(rank),
    reporterCount: Number(reporterCount),
    firstReportedAt: new Date(Number(time)),
    id: Number(id),
  }
  return { [side === 'a' ? 'after' : 'before']: position, limit }
}

/** The cursors of the neighbouring pages. */
export function caseCursors({
  previous,
  next,
}: {
  readonly previous: CasePosition | undefined
  readonly next: CasePosition | undefined
}) {
  const cursorAt = (side: 'a' | 'b', { rank, reporterCount, firstReportedAt, id }: CasePosition) =>
    `${side}${rank}.${reporterCount}.${firstReportedAt.getTime()}.${id}`
  return { previous: previous && cursorAt('b', previous), next: next && cursorAt('a', next) }
}
