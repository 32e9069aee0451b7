import { escapeHtml } from './html.js'

/** HTML that is safe to insert: every text in it has been escaped. */
export class Markup {
  readonly text: string

  constructor(text: string) {
    this.text = text
  }
}

export type MarkupValue = Markup | string | number | bigint | false | null | undefined | readonly MarkupValue[]

/** A template of HTML. Texts are escaped; lists are joined; false, null and undefined are left out. */
export function html(strings: TemplateStringsArray, ...values: readonly MarkupValue[]): Markup {
  return new Markup(strings.map((part, index) => part + write(values[index])).join(''))
}

/** HTML that older helpers have written and escaped. */
export function trustMarkup(text: string): Markup {
  return new Markup(text)
}

function write(value: MarkupValue): string {
  if (value === false || value === null || value === undefined) return ''
  if (value instanceof Markup) return value.text
  if (typeof value === 'object') return value.map(write).join('')
  return escapeHtml(String(value))
}
