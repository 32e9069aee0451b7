import type { FastifyRequest } from 'fastify'
import { hasPower, type Power } from '../../../domain/accounts/role-powers.js'
import { html, type Markup } from '../../pages/markup.js'
import { actionForm, hiddenField, reasonField } from '../form-parts.js'

/** Undoes an action, which needs the power of the action. On the page of a case it leads back there. */
export function undoForm(
  request: FastifyRequest,
  { id: actionId, power }: { readonly id: number; readonly power: Power },
  caseId?: number,
): Markup | false {
  if (!hasPower(request.console.staff.role, power)) return false
  const id = caseId === undefined ? undefined : String(caseId)
  const form = actionForm(
    request,
    `/admin/actions/${actionId}/undo`,
    html`${hiddenField('case_id', id)}${reasonField()}<button class="quiet">Undo action ${actionId}</button>`,
  )
  return html`<details><summary>Undo</summary>${form}</details>`
}
