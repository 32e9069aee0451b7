import type { FastifyReply, FastifyRequest } from 'fastify'
import { Refusal } from '../../domain/refusals.js'
import { formText } from '../forms/form-text.js'
import { html, type Markup } from '../pages/markup.js'
import { stripQuery } from '../server/paths.js'
import { sendConsolePage } from './console-page.js'
import { embeddedFields } from './embedded-fields.js'
import { confirmField } from './form-parts.js'

export interface Confirmation {
  readonly title: string
  /** The text that has to be typed. */
  readonly label: string
  /** The effects of the change. */
  readonly preview: Markup
}

/** Requires a confirmation that the use case does not ask for. `addFormAction` shows the preview. */
export async function requireConfirmation(
  confirm: string | undefined,
  label: string,
  readPreview: () => Promise<object>,
): Promise<void> {
  if (confirm === label) return
  throw new Refusal('confirmation_needed', `Type ${label} to confirm.`, { details: { preview: await readPreview() } })
}

/** Shows what a dangerous change would do, and requires the label of its target. The other fields are kept. */
export function sendConfirmationPage(
  request: FastifyRequest,
  reply: FastifyReply,
  { title, label, preview }: Confirmation,
): FastifyReply {
  const isWrong = formText(request, 'confirm') !== undefined
  return sendConsolePage(request, reply, {
    title,
    status: isWrong ? 422 : 200,
    content: html`<section class="card"><p>Nothing has been changed yet.</p>
${preview}
${isWrong && html`<p class="alert" role="alert" id="confirm-error">The <a href="#confirm">text</a> does not match.</p>\n`}<form class="entry" method="post" action="${stripQuery(request.url)}">
${embeddedFields(request.body, ['confirm', 'current_password'])}${confirmField(label, isWrong ? 'wrong' : undefined)}<button class="danger">${title}</button></form></section>`,
  })
}
