import type { ENGLISH } from '../../../languages/en/catalogue.js'
import type { ArgumentOf, MessageId, Translate, ValuesOf } from '../../../languages/translate.js'
import { html, type Markup, type MarkupValue } from '../markup.js'

/** `<link>` of a message leads to this path or address. */
interface Link {
  readonly link: string
}

type MarkupValues<Id extends MessageId> = (typeof ENGLISH)[Id] extends `${string}<link>${string}`
  ? readonly [values: Link & Readonly<Record<ArgumentOf<Id>, MarkupValue>>]
  : ValuesOf<Id, MarkupValue>

type Chunks = MarkupValue[]

const TAGS = {
  b: (chunks: Chunks) => html`<b>${chunks}</b>`,
  bdi: (chunks: Chunks) => html`<bdi>${chunks}</bdi>`,
  code: (chunks: Chunks) => html`<code>${chunks}</code>`,
  // Read by screen readers only.
  hidden: (chunks: Chunks) => html`<span class="for-readers">${chunks}</span>`,
}

/** A message as HTML: its tags become elements, and texts among the values are escaped. */
export function translateMarkup<Id extends MessageId>(t: Translate, id: Id, ...[values]: MarkupValues<Id>): Markup {
  const { link, ...others } = {
    link: '',
    ...(values as (Partial<Link> & Readonly<Record<string, MarkupValue>>) | undefined),
  }
  const parts = t.message(id).formatToParts<Markup | MarkupValue>({
    ...TAGS,
    link: (chunks: Chunks) => html`<a href="${link}">${chunks}</a>`,
    ...(others as Record<string, string>),
  })
  return html`${parts.map(({ value }: { readonly value?: unknown }) => value as MarkupValue)}`
}

/** The HTML text of a message, for functions that join texts. */
export function messageHtml<Id extends MessageId>(t: Translate, id: Id, ...values: MarkupValues<Id>): string {
  return translateMarkup(t, id, ...values).text
}
