import type { FastifyRequest } from 'fastify'
import { html, type Markup, type MarkupValue } from '../pages/markup.js'

/** A form that makes a change. It has the token of the session. */
export function actionForm(
  { console: { formToken } }: FastifyRequest,
  action: string,
  content: MarkupValue,
  layout: 'entry' | 'buttons' = 'entry',
): Markup {
  return html`<form class="${layout}" method="post" action="${action}">
<input type="hidden" name="form" value="${formToken.console}">
${content}</form>\n`
}

export function hiddenField(name: string, value: string | undefined): Markup | false {
  return value !== undefined && html`<input type="hidden" name="${name}" value="${value}">\n`
}

/** Every change needs a reason, which the audit log keeps. */
export function reasonField(value = ''): Markup {
  return html`<label>Reason<input name="reason" required maxlength="2000" autocomplete="off" value="${value}"></label>\n`
}

/** Dangerous changes: the label of the target has to be typed. */
export function confirmField(label: string, error?: string): Markup {
  return html`<label>Type <span><bdi>${label}</bdi></span> to confirm<input name="confirm" required autocomplete="off" autocapitalize="none" spellcheck="false"${
    error !== undefined && html` aria-invalid="true"`
  }></label>\n`
}

export function select(
  label: string,
  name: string,
  options: readonly (readonly [value: string, text: string])[],
  chosen: string | undefined,
): Markup {
  return html`<label>${label}<select name="${name}">${options.map(
    ([value, text]) => html`<option value="${value}"${value === (chosen ?? '') && html` selected`}>${text}</option>`,
  )}</select></label>\n`
}

export function textField(label: string, name: string, value = ''): Markup {
  return html`<label>${label}<input name="${name}" value="${value}" autocomplete="off"></label>\n`
}

/** Filters are a form with GET, so that a filtered list has an address. */
export function filterForm(action: string, content: MarkupValue): Markup {
  return html`<form class="filters" method="get" action="${action}">${content}<button>Show</button></form>\n`
}
