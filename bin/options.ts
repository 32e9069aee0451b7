import { InvalidArgumentError } from 'commander'

const SECONDS = { s: 1, m: 60, h: 3_600, d: 86_400 } as const

/** Seconds from `90s`, `15m`, `12h`, `30d` or a plain number. */
export function readDuration(text: string): number {
  const [, digits, unit = 's'] = /^([0-9]{1,9})([smhd])?$/.exec(text.trim()) ?? []
  if (digits === undefined) throw new InvalidArgumentError('Expected a duration like 90s, 15m, 12h or 30d.')
  return Number(digits) * SECONDS[unit as keyof typeof SECONDS]
}

/** A lifetime with a unit. A plain number is refused: it could mean days or seconds. */
export function readLifetime(text: string): number {
  if (/[0-9]$/.test(text.trim()))
    throw new InvalidArgumentError('Expected a duration with its unit, like 15m, 12h or 30d.')
  return readDuration(text)
}

/** A point in time: a day, a time in ISO 8601, or a duration from now with its unit. */
export function readEnd(text: string): Date {
  const end = /^[0-9]+[smhd]$/.test(text.trim()) ? new Date(Date.now() + readDuration(text) * 1_000) : new Date(text)
  if (Number.isNaN(end.getTime())) throw new InvalidArgumentError('Expected a day, a time, or a duration like 7d.')
  return end
}

export function readCount(text: string): number {
  if (!/^[1-9][0-9]{0,8}$/.test(text)) throw new InvalidArgumentError('Expected an integer of at least 1.')
  return Number(text)
}

export function readBytes(text: string): number {
  if (!/^[1-9][0-9]{0,14}$/.test(text)) throw new InvalidArgumentError('Expected a number of bytes.')
  return Number(text)
}

/** A day that exists, as YYYY-MM-DD. */
export function readDay(text: string): string {
  const midnight = new Date(`${text}T00:00:00Z`)
  const exists = !Number.isNaN(midnight.getTime()) && midnight.toISOString().slice(0, 10) === text
  if (!exists) throw new InvalidArgumentError('Expected a day like 2026-02-28.')
  return text
}

/** A time with or without its hour. */
export function readTime(text: string): Date {
  const time = new Date(text)
  if (Number.isNaN(time.getTime()))
    throw new InvalidArgumentError('Expected a time like 2026-02-28 or 2026-02-28T08:00Z.')
  return time
}
