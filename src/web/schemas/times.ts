import { RequestFault } from '../server/request-faults.js'

/** A day, or a time with an offset. A space before the offset is an unencoded plus sign. */
const timestamp = /^(\d{4}-\d{2}-\d{2})(?:T(\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d+))?)?(?:Z|([+ -])(\d{2}):?(\d{2})?))?$/i

/**
 * Reads a time from a query. Stored times have milliseconds, so further digits are rounded: `up` to the next millisecond, `down` to
 * the previous one.
 */
export function readTime(name: string, text: string, rounding: 'up' | 'down' = 'down'): Date {
  const parts = timestamp.exec(text)
  const [
    ,
    day = '',
    hour = '0',
    minute = '0',
    second = '0',
    fraction = '',
    sign,
    offsetHour = '0',
    offsetMinute = '0',
  ] = parts ?? []
  const midnight = new Date(`${day}T00:00:00.000Z`)
  const inRange = Number(hour) < 24 && Number(minute) < 60 && Number(second) <= 60
  const offsetInRange = Number(offsetHour) < 24 && Number(offsetMinute) < 60
  if (!isDay(midnight, day) || !inRange || !offsetInRange) {
    throw new RequestFault(422, `"${name}" is not a time, written like 2025-03-01T08:15:30.250Z.`, { field: name })
  }
  const offset = (sign === '-' ? -1 : 1) * minutes(offsetHour, offsetMinute)
  const milliseconds =
    Number(fraction.slice(0, 3).padEnd(3, '0')) + (rounding === 'up' && /[1-9]/.test(fraction.slice(3)) ? 1 : 0)
  return new Date(midnight.getTime() + ((minutes(hour, minute) - offset) * 60 + Number(second)) * 1_000 + milliseconds)
}

/** `Date` reads the 30th of February as a day in March. */
function isDay(midnight: Date, day: string): boolean {
  return !Number.isNaN(midnight.getTime()) && midnight.toISOString().startsWith(day)
}

function minutes(hour: string, minute: string): number {
  return Number(hour) * 60 + Number(minute)
}
