import { escapeHtml, PAGE_RULES, policyOf } from './html.js'

/**
 * The policy of a page with a form. Browsers hold `form-action` against every address that the answer leads on to, and where a
 * client waits for it, nobody but the client knows them all; addresses of strangers do not belong into a header either.
 */
export function formPolicy({ leadsToClient }: { readonly leadsToClient: boolean }): string {
  const { 'form-action': _, ...others } = PAGE_RULES
  return policyOf(leadsToClient ? others : { ...others, 'form-action': "'self'" })
}

export interface Field {
  readonly name: string
  readonly label: string
  readonly type: 'text' | 'password'
  readonly autocomplete: string
  readonly value?: string
  readonly hint?: string
  readonly focus?: boolean
}

export function field({ name, label, type, autocomplete, value = '', hint, focus = false }: Field): string {
  const plain = type === 'text' ? ' autocapitalize="none" spellcheck="false"' : ''
  return `<p class="field"><label for="${name}">${escapeHtml(label)}</label>
<input id="${name}" name="${name}" type="${type}" autocomplete="${autocomplete}"${plain} value="${escapeHtml(value)}" required${
    focus ? ' autofocus' : ''
  }${hint === undefined ? '' : ` aria-describedby="${name}-hint"`}>${
    hint === undefined ? '' : `\n<span class="soft small" id="${name}-hint">${escapeHtml(hint)}</span>`
  }</p>`
}

export function hidden(fields: Readonly<Record<string, string | undefined>>): string {
  return Object.entries(fields)
    .flatMap(([name, value]) =>
      value === undefined ? [] : `<input type="hidden" name="${name}" value="${escapeHtml(value)}">`,
    )
    .join('\n')
}

/** Read out as soon as the page is there. */
export function alert(message: string | undefined): string {
  return message === undefined ? '' : `<p class="alert" role="alert">${escapeHtml(message)}</p>\n`
}
