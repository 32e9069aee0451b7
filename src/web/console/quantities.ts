import { html, type Markup } from '../pages/markup.js'

const number = new Intl.NumberFormat('en-GB')

export function formatCount(value: number): string {
  return number.format(value)
}

/** A count that was not counted further than a limit. */
export function formatBoundedCount(value: number, limit: number): string {
  return value > limit ? `more than ${number.format(limit)}` : number.format(value)
}

export function formatRate(perMinute: number): string {
  return perMinute > 0 && perMinute < 10 ? perMinute.toFixed(1) : number.format(Math.round(perMinute))
}

export function formatBytes(value: number | null): string {
  if (value === null) return 'unknown'
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  let scaled = value
  let unit = 0
  while (scaled >= 1_024 && unit < units.length - 1) {
    scaled /= 1_024
    unit += 1
  }
  return `${scaled < 10 && unit > 0 ? scaled.toFixed(1) : Math.round(scaled)} ${units[unit]}`
}

export function formatSeconds(value: number | null): string {
  if (value === null) return '–'
  if (value < 120) return `${Math.round(value)} s`
  if (value < 7_200) return `${Math.round(value / 60)} min`
  return value < 172_800 ? `${Math.round(value / 3_600)} h` : `${Math.round(value / 86_400)} days`
}

export function formatMilliseconds(value: number | null): string {
  if (value === null) return '–'
  return value < 1_000 ? `${value} ms` : formatSeconds(value / 1_000)
}

/** A time in UTC, which `writeTimesInZone` changes to the zone of the reader. */
export function formatTime(value: Date | null | undefined): Markup {
  if (value === null || value === undefined) return html`–`
  return html`<time datetime="${value.toISOString()}">${timeFormat('UTC').format(value)}</time>`
}

const TIME_IN_UTC = /<time datetime="([0-9TZ:.-]{24})">[^<]* UTC<\/time>/g

/** Writes the times of a page in a time zone. Texts of other people are escaped and have no elements. */
export function writeTimesInZone(page: string, zone: string): string {
  if (zone === 'UTC') return page
  const format = timeFormat(zone)
  return page.replace(TIME_IN_UTC, (_element, time: string) => {
    return `<time datetime="${time}">${format.format(new Date(time))}</time>`
  })
}

const timeFormats = new Map<string, Intl.DateTimeFormat>()

function timeFormat(timeZone: string): Intl.DateTimeFormat {
  const cachedFormat = timeFormats.get(timeZone)
  if (cachedFormat !== undefined) return cachedFormat
  const day = { day: 'numeric', month: 'short', year: 'numeric' } as const
  const format = new Intl.DateTimeFormat('en-GB', {
    ...day,
    hour: '2-digit',
    minute: '2-digit',
    timeZoneName: 'short',
    timeZone,
  })
  timeFormats.set(timeZone, format)
  return format
}

/** How long ago, with the time itself for machines. */
export function formatRelativeTime(value: Date | null, now: Date): Markup {
  if (value === null) return html`–`
  const text = formatSeconds(Math.max(0, (now.getTime() - value.getTime()) / 1_000))
  return html`<time datetime="${value.toISOString()}">${text} ago</time>`
}
