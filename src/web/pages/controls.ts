import { html, type Markup } from './markup.js'

interface Control {
  readonly name: string
  readonly label: string
  readonly hint?: string | undefined
  readonly error?: string | undefined
}

/** A text of several lines. */
export function textArea({
  value,
  rows = 5,
  ...control
}: Control & { readonly value: string; readonly rows?: number }) {
  // The parser of HTML drops a line break directly after the tag.
  return framed(
    control,
    html`<textarea id="${control.name}" name="${control.name}" rows="${rows}"${described(control)}>
${value}</textarea>`,
  )
}

/** A line of text that may stay empty. */
export function textLine({
  value,
  autocomplete = 'off',
  ...control
}: Control & { readonly value: string; readonly autocomplete?: string }): Markup {
  return framed(
    control,
    html`<input id="${control.name}" name="${control.name}" type="text" autocomplete="${autocomplete}" value="${value}"${described(control)}>`,
  )
}

export function selectList({
  options,
  chosen,
  ...control
}: Control & {
  readonly options: readonly (readonly [value: string, text: string])[]
  readonly chosen: string
}): Markup {
  const list = options.map(
    ([value, text]) => html`<option value="${value}"${value === chosen && html` selected`}>${text}</option>`,
  )
  return framed(
    control,
    html`<select id="${control.name}" name="${control.name}"${described(control)}>${list}</select>`,
  )
}

/** A box to tick. Its value is `true`; browsers send nothing for a box that is not ticked. */
export function checkBox({
  checked,
  value = 'true',
  id,
  ...control
}: Control & { readonly checked: boolean; readonly value?: string; readonly id?: string }): Markup {
  const { name, label, hint } = control
  const key = id ?? name
  return html`<p class="check"><input id="${key}" name="${name}" type="checkbox" value="${value}"${checked && html` checked`}${
    hint !== undefined && html` aria-describedby="${key}-hint"`
  }><label for="${key}">${label}</label>${hint !== undefined && html`<span class="soft small" id="${key}-hint">${hint}</span>`}</p>\n`
}

function framed({ name, label, hint, error }: Control, input: Markup): Markup {
  return html`<p class="field"><label for="${name}">${label}</label>
${hint !== undefined && html`<span class="soft small" id="${name}-hint">${hint}</span>\n`}${
  error !== undefined && html`<span class="wrong" id="${name}-error">${error}</span>\n`
}${input}</p>\n`
}

function described({ name, hint, error }: Control): Markup {
  const ids = [...(error === undefined ? [] : [`${name}-error`]), ...(hint === undefined ? [] : [`${name}-hint`])].join(
    ' ',
  )
  return html`${error !== undefined && html` aria-invalid="true"`}${ids !== '' && html` aria-describedby="${ids}"`}`
}
