import { randomUUID } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import { html, type Markup, type MarkupValue } from '../pages/markup.js'

export interface FormOptions {
  readonly layout?: 'entry' | 'buttons' | 'plain'
  /** The version that the form was made from: the change is refused if the version has changed in the meantime. */
  readonly version?: string | undefined
  /** Encoding of a form with a file. */
  readonly encoding?: 'multipart/form-data'
}

/** A form that requests a change. It has the token of the session, and a key with which a repeated click is the same change. */
export function actionForm(
  { console: { formToken } }: FastifyRequest,
  action: string,
  content: MarkupValue,
  { layout = 'entry', version, encoding }: FormOptions = {},
): Markup {
  return html`<form class="${layout}" method="post" action="${action}"${encoding !== undefined && html` enctype="${encoding}"`}>
<input type="hidden" name="form" value="${formToken.console}">
<input type="hidden" name="idempotency_key" value="${randomUUID()}">
${hiddenField('version', version)}${content}</form>\n`
}

export function hiddenField(name: string, value: string | undefined): Markup | false {
  return value !== undefined && html`<input type="hidden" name="${name}" value="${value}">\n`
}

/** Every change needs a reason, which the audit log keeps. */
export function reasonField(value = ''): Markup {
  return html`<label>Reason<input name="reason" required maxlength="2000" autocomplete="off" value="${value}"></label>\n`
}

/** The end of a temporary change. */
export function untilField(label = 'Ends on (UTC, optional)'): Markup {
  return html`<label>${label}<input type="date" name="until"></label>\n`
}

/** Dangerous changes: the label of the target has to be typed. */
export function confirmField(label: string, error?: string): Markup {
  return html`<label>Type <span><bdi>${label}</bdi></span> to confirm<input name="confirm" required autocomplete="off" autocapitalize="none" spellcheck="false"${
    error !== undefined && html` id="confirm" aria-invalid="true" aria-describedby="confirm-error"`
  }></label>\n`
}

export function select(
  label: string,
  name: string,
  options: readonly (readonly [value: string, text: string])[],
  chosen?: string | undefined,
): Markup {
  return html`<label>${label}<select name="${name}">${options.map(
    ([value, text]) => html`<option value="${value}"${value === (chosen ?? '') && html` selected`}>${text}</option>`,
  )}</select></label>\n`
}

/** Options of a select whose texts are their values, after one for "all". */
export function buildChoices(values: readonly string[], all?: string): readonly (readonly [string, string])[] {
  const options = values.map((value) => [value, value.replaceAll('_', ' ')] as const)
  return all === undefined ? options : [['', all], ...options]
}

interface TextField {
  readonly type?: 'text' | 'date' | 'number'
  readonly required?: boolean
}

export function textField(
  label: string,
  name: string,
  value = '',
  { type = 'text', required }: TextField = {},
): Markup {
  return html`<label>${label}<input${type !== 'text' && html` type="${type}"`} name="${name}" value="${value}" autocomplete="off"${
    required && html` required`
  }></label>\n`
}

export function textArea(label: string, name: string, { required = true }: Pick<TextField, 'required'> = {}): Markup {
  return html`<label>${label}<textarea name="${name}" rows="3"${required && html` required`} maxlength="2000"></textarea></label>\n`
}

/** A box to tick; without a value it is sent as `true`. */
export function checkbox(
  label: MarkupValue,
  name: string,
  { isTicked = false, value = 'true' }: { readonly isTicked?: boolean; readonly value?: string } = {},
): Markup {
  return html`<label class="choice"><input type="checkbox" name="${name}" value="${value}"${isTicked && html` checked`}><span>${label}</span></label>\n`
}

/** Filters are a form with GET, so that a filtered list has an address. Those in `more` are folded until one is used. */
export function filterForm(
  action: string,
  content: MarkupValue,
  more: readonly { readonly value: string | undefined; readonly field: Markup }[] = [],
): Markup {
  const isUsed = more.some(({ value }) => value !== undefined)
  return html`<form class="filters" method="get" action="${action}">${content}${
    more.length > 0 &&
    html`<details${isUsed && html` open`}><summary>More filters</summary><div class="filters">${more.map(({ field }) => field)}</div></details>`
  }<button>Show</button></form>\n`
}

/** A text among the filters that are folded until they are used. */
export function moreText(label: string, name: string, value: string | undefined, options: TextField = {}) {
  return { value, field: textField(label, name, value, options) }
}
