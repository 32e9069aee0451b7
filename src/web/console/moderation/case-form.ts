import type { FastifyRequest } from 'fastify'
import { resolveCase } from '../../../domain/moderation/change-case.js'
import type { ActionOptions } from '../../../domain/moderation/record-action.js'
import type { ModerationServices } from '../../../services/services.js'
import { formNumber, formTime, isTicked } from '../../forms/form-fields.js'
import { formText } from '../../forms/form-text.js'

/** The parameters of every action, from the form. */
export function readActionOptions(request: FastifyRequest): ActionOptions {
  return {
    reason: formText(request, 'reason'),
    caseId: formNumber(request, 'case_id'),
    until: formTime(request, 'until'),
  }
}

/** An action that was taken on the page of a case leads back to the case. */
export function caseOrPagePath(page: (request: FastifyRequest) => string): (request: FastifyRequest) => string {
  return (request) => {
    const id = formText(request, 'case_id')
    return id !== undefined && /^[1-9][0-9]{0,14}$/.test(id) ? `/admin/reports/${id}` : page(request)
  }
}

/** Resolves the case of an action if this is ticked in the form. */
export async function resolveCaseIfTicked(services: ModerationServices, request: FastifyRequest): Promise<void> {
  const caseId = formNumber(request, 'case_id')
  if (caseId === undefined || !isTicked(request, 'resolve')) return
  await resolveCase(services, request.console.actor, caseId, { reason: formText(request, 'reason') })
}
