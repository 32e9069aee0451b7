import type { FastifyRequest } from 'fastify'
import { html } from '../pages/markup.js'
import { pathOf } from '../server/paths.js'
import type { ConsolePage } from './console-page.js'
import { keptFields } from './kept-fields.js'

/** Asks for the password before a change. The form has the fields of the change, and is sent to the same address. */
export function confirmPasswordPage(request: FastifyRequest, error?: string, status = 200): ConsolePage {
  const alert = error !== undefined && html`<p class="alert" role="alert" id="password-error">${error}</p>\n`
  const invalid = error !== undefined && html` aria-invalid="true" aria-describedby="password-error"`
  const input = html`<input type="password" name="current_password" autocomplete="current-password" required autofocus${invalid}>`
  return {
    title: 'Confirm with your password',
    status,
    content: html`<section class="card">
<p>The change has not been made yet. It needs your password, because you gave it more than ten minutes ago.</p>
${alert}<form class="entry" method="post" action="${pathOf(request.url)}">
${keptFields(request.body, ['current_password'])}
<label>Password${input}</label>
<button>Continue</button></form></section>`,
  }
}
