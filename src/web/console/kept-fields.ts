import { html, type Markup } from '../pages/markup.js'

/** The fields of a form that was sent, as hidden fields of the next one. */
export function keptFields(body: unknown, without: readonly string[]): readonly Markup[] {
  if (typeof body !== 'object' || body === null) return []
  return Object.entries(body).flatMap(([name, value]): Markup[] => {
    if (without.includes(name)) return []
    if (Array.isArray(value)) return value.flatMap((item) => hiddenField(`${name}[]`, item))
    return hiddenField(name, value)
  })
}

function hiddenField(name: string, value: unknown): Markup[] {
  return typeof value === 'string' ? [html`<input type="hidden" name="${name}" value="${value}">\n`] : []
}
