import { DAY_MS } from '../../protocol/durations.js'

/** How many days, weeks and months keep their last backup. */
export interface Retention {
  readonly daily: number
  readonly weekly: number
  readonly monthly: number
}

/** Returns the newest backup of each of the last days, weeks and months that have one, and the newest of all. */
export function chooseRetained<Backup extends { readonly startedAt: Date }>(
  backups: readonly Backup[],
  { daily, weekly, monthly }: Retention,
): ReadonlySet<Backup> {
  const newestFirst = [...backups].sort((one, other) => other.startedAt.getTime() - one.startedAt.getTime())
  return new Set([
    ...newestFirst.slice(0, 1),
    ...newestOfEach(newestFirst, dayOf, daily),
    ...newestOfEach(newestFirst, weekOf, weekly),
    ...newestOfEach(newestFirst, monthOf, monthly),
  ])
}

function newestOfEach<Backup extends { readonly startedAt: Date }>(
  newestFirst: readonly Backup[],
  periodOf: (time: Date) => string,
  count: number,
): readonly Backup[] {
  const newest = new Map<string, Backup>()
  for (const backup of newestFirst) {
    const period = periodOf(backup.startedAt)
    if (!newest.has(period)) newest.set(period, backup)
  }
  return [...newest.values()].slice(0, count)
}

const dayOf = (time: Date) => time.toISOString().slice(0, 10)
const monthOf = (time: Date) => time.toISOString().slice(0, 7)
/** Weeks begin on Monday; the first of January 1970 was a Thursday. */
const weekOf = (time: Date) => String(Math.floor((time.getTime() / DAY_MS + 3) / 7))
