import type { FastifyRequest } from 'fastify'
import type { ActionRow } from '../../../persistence/moderation/actions.js'
import { html, type Markup } from '../../pages/markup.js'
import { formatTime } from '../quantities.js'
import { undoForm } from './undo-form.js'

/** Actions with who took them, why, and their undo. */
export function actionList(request: FastifyRequest, actions: readonly ActionRow[]): Markup {
  if (actions.length === 0) return html`<p>No action was taken.</p>`
  return html`<ul class="history list">${actions.map(
    ({ id, kind, power, actor, reason, createdAt, until, undoneById, canBeUndone }) =>
      html`<li>${formatTime(createdAt)}: <b>${kind}</b> by <bdi>${actor.name}</bdi>${until !== null && html`, until ${formatTime(until)}`}: <bdi>${reason}</bdi>${
        undoneById !== null ? ' (undone)' : canBeUndone && undoForm(request, { id, power })
      }</li>\n`,
  )}</ul>`
}
