import type { FastifyRequest } from 'fastify'
import { html, type Markup } from '../../pages/markup.js'
import { actionForm, hiddenField, reasonField } from '../form-parts.js'

/** Undoes an action. On the page of a case it leads back there. */
export function undoForm(request: FastifyRequest, actionId: number, caseId?: number): Markup {
  const id = caseId === undefined ? undefined : String(caseId)
  const form = actionForm(
    request,
    `/admin/actions/${actionId}/undo`,
    html`${hiddenField('case_id', id)}${reasonField()}<button class="quiet">Undo action ${actionId}</button>`,
  )
  return html`<details><summary>Undo</summary>${form}</details>`
}
