import type { Translate } from '../../languages/translate.js'
import { escapeHtml, formatPolicy, PAGE_RULES } from './html.js'

/**
 * The policy of a page with a form. Browsers apply `form-action` to every redirect that follows the form. If a client waits for the
 * result, only the client knows these addresses, so there is no `form-action`. Only pages that use passkeys or upload
 * archives run a script, which is a file of this pod; the latter also sends requests.
 */
export function formPolicy({
  mayLeadToClient,
  hasScript = false,
  mayConnect = false,
}: {
  readonly mayLeadToClient: boolean
  readonly hasScript?: boolean
  readonly mayConnect?: boolean
}): string {
  const { 'form-action': _, ...others } = PAGE_RULES
  return formatPolicy({
    ...others,
    ...(!mayLeadToClient && { 'form-action': "'self'" }),
    ...(hasScript && { 'script-src': "'self'" }),
    ...(mayConnect && { 'connect-src': "'self'" }),
  })
}

export interface Field {
  readonly name: string
  readonly label: string
  readonly type: 'text' | 'password'
  readonly autocomplete: string
  readonly value?: string
  readonly maxLength?: number
  readonly hint?: string
  /** The error in the value. */
  readonly error?: string | undefined
  /** A field that is wrong together with this one, and shows why. */
  readonly errorAt?: string | undefined
  readonly focus?: boolean
}

export function field({
  name,
  label,
  type,
  autocomplete,
  value = '',
  maxLength,
  hint,
  error,
  errorAt,
  focus = false,
}: Field): string {
  const hintId = `${name}-hint`
  const errorId = `${name}-error`
  const describedBy = [
    ...(error === undefined ? [] : [errorId]),
    ...(errorAt === undefined ? [] : [`${errorAt}-error`]),
    ...(hint === undefined ? [] : [hintId]),
  ]
  const attributes = [
    `id="${name}" name="${name}" type="${type}" autocomplete="${autocomplete}"`,
    ...(type === 'text' ? ['autocapitalize="none" spellcheck="false"'] : []),
    `value="${escapeHtml(value)}" required`,
    ...(maxLength === undefined ? [] : [`maxlength="${maxLength}"`]),
    ...(focus ? ['autofocus'] : []),
    ...(error === undefined && errorAt === undefined ? [] : ['aria-invalid="true"']),
    ...(describedBy.length === 0 ? [] : [`aria-describedby="${describedBy.join(' ')}"`]),
  ]
  return [
    `<p class="field"><label for="${name}">${escapeHtml(label)}</label>`,
    ...(hint === undefined ? [] : [`<span class="soft small" id="${hintId}">${escapeHtml(hint)}</span>`]),
    ...(error === undefined ? [] : [`<span class="wrong" id="${errorId}">${escapeHtml(error)}</span>`]),
    `<input ${attributes.join(' ')}></p>`,
  ].join('\n')
}

/** Something that is wrong with a form: in one field, or in the whole form. */
export interface FormError {
  readonly field: string | undefined
  readonly message: string
}

/** All errors of a form, each with a link to its field. Screen readers read it out when the page is loaded. */
export function errorSummary(t: Translate, errors: readonly FormError[], advice?: string): string {
  if (errors.length === 0) return ''
  const items = errors.map(({ field: name, message }) => {
    const text = escapeHtml(message)
    return `<li>${name === undefined ? text : `<a href="#${name}">${text}</a>`}</li>`
  })
  return `<div class="alert" role="alert"><h2>${escapeHtml(t('common.correct', { count: errors.length }))}</h2>
<ul>${items.join('')}</ul>${advice === undefined ? '' : `\n<p>${escapeHtml(advice)}</p>`}</div>\n`
}

export function hiddenFields(fields: Readonly<Record<string, string | undefined>>): string {
  return Object.entries(fields)
    .flatMap(([name, value]) =>
      value === undefined ? [] : `<input type="hidden" name="${name}" value="${escapeHtml(value)}">`,
    )
    .join('\n')
}

/** Screen readers read it out when the page is loaded. */
export function alert(message: string | undefined): string {
  return message === undefined ? '' : `<p class="alert" role="alert">${escapeHtml(message)}</p>\n`
}
