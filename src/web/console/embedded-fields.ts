import type { Markup } from '../pages/markup.js'
import { hiddenField } from './form-parts.js'

/** The fields of a form that was sent, as hidden fields of the next one. */
export function embeddedFields(body: unknown, without: readonly string[]): readonly Markup[] {
  if (typeof body !== 'object' || body === null) return []
  return Object.entries(body).flatMap(([name, value]): Markup[] => {
    if (without.includes(name)) return []
    if (Array.isArray(value)) return value.flatMap((item) => textIn(`${name}[]`, item))
    return textIn(name, value)
  })
}

function textIn(name: string, value: unknown): Markup[] {
  const field = typeof value === 'string' && hiddenField(name, value)
  return field === false ? [] : [field]
}
