import { html, type Markup } from './markup.js'

interface Control {
  readonly name: string
  /** Where a page has several controls with one name. Default: the name. */
  readonly id?: string | undefined
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
  return frameControl(
    control,
    html`<textarea id="${idOf(control)}" name="${control.name}" rows="${rows}"${descriptionAttributes(control)}>
${value}</textarea>`,
  )
}

/** A line of text that may stay empty. */
export function textLine({
  value,
  autocomplete = 'off',
  ...control
}: Control & { readonly value: string; readonly autocomplete?: string }): Markup {
  return frameControl(
    control,
    html`<input id="${idOf(control)}" name="${control.name}" type="text" autocomplete="${autocomplete}" value="${value}"${descriptionAttributes(control)}>`,
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
  return frameControl(
    control,
    html`<select id="${idOf(control)}" name="${control.name}"${descriptionAttributes(control)}>${list}</select>`,
  )
}

/** A box to tick. Its value is `true`; browsers send nothing for a box that is not ticked. */
export function checkBox({
  checked,
  value = 'true',
  ...control
}: Omit<Control, 'label'> & {
  readonly label: string | Markup
  readonly checked: boolean
  readonly value?: string
}): Markup {
  const { name, label, hint, error } = control
  const key = idOf(control)
  return html`<p class="check"><input id="${key}" name="${name}" type="checkbox" value="${value}"${checked && html` checked`}${descriptionAttributes(
    control,
  )}><label for="${key}">${label}</label>${hint !== undefined && html`<span class="soft small" id="${key}-hint">${hint}</span>`}${
    error !== undefined && html`<span class="wrong" id="${key}-error">${error}</span>`
  }</p>\n`
}

function idOf({ id, name }: Pick<Control, 'id' | 'name'>): string {
  return id ?? name
}

function frameControl(control: Control, input: Markup): Markup {
  const { label, hint, error } = control
  const id = idOf(control)
  return html`<p class="field"><label for="${id}">${label}</label>
${hint !== undefined && html`<span class="soft small" id="${id}-hint">${hint}</span>\n`}${
  error !== undefined && html`<span class="wrong" id="${id}-error">${error}</span>\n`
}${input}</p>\n`
}

function descriptionAttributes(control: Omit<Control, 'label'>): Markup {
  const { hint, error } = control
  const id = idOf(control)
  const ids = [...(error === undefined ? [] : [`${id}-error`]), ...(hint === undefined ? [] : [`${id}-hint`])].join(' ')
  return html`${error !== undefined && html` aria-invalid="true"`}${ids !== '' && html` aria-describedby="${ids}"`}`
}
