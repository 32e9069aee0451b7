import type { Translate } from '../../languages/translate.js'
import { html, type Markup } from './markup.js'

/** Formats are made once for each language, because that takes longer than formatting. */
const formats = new Map<string, Intl.DateTimeFormat>()

/** English dates have the order of the rest of Europe. */
function formatOf({ language }: Translate, name: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = `${language} ${name}`
  const cachedFormat = formats.get(key)
  if (cachedFormat !== undefined) return cachedFormat
  const newFormat = new Intl.DateTimeFormat(language === 'en' ? 'en-GB' : language, { ...options, timeZone: 'UTC' })
  formats.set(key, newFormat)
  return newFormat
}

export function timeHtml(t: Translate, time: Date): Markup {
  const text = formatOf(t, 'time', { dateStyle: 'long', timeStyle: 'short' }).format(time)
  return html`<time datetime="${time.toISOString()}">${t('common.time', { time: text })}</time>`
}

export function dayHtml(t: Translate, time: Date): Markup {
  return html`<time datetime="${time.toISOString()}">${formatOf(t, 'day', { dateStyle: 'long' }).format(time)}</time>`
}

/** A birthday: with its year, or without. */
export function birthdayText(
  t: Translate,
  { date, hasYear }: { readonly date: Date; readonly hasYear: boolean },
): string {
  const options = { day: 'numeric', month: 'long', ...(hasYear && { year: 'numeric' as const }) } as const
  return formatOf(t, hasYear ? 'birthday' : 'birthday without year', options).format(date)
}

/** A full hour as the language writes it. */
export function hourText(t: Translate, hour: number): string {
  return formatOf(t, 'hour', { timeStyle: 'short' }).format(new Date(Date.UTC(2000, 0, 1, hour)))
}
