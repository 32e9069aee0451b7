import type { FastifyRequest } from 'fastify'
import { resolveCase } from '../../../domain/moderation/change-case.js'
import type { ActionOptions } from '../../../domain/moderation/record-action.js'
import type { Pod } from '../../../pod/pod.js'
import { formText } from '../../oidc/form-text.js'
import { formNumber, formTime, isTicked } from '../form-fields.js'

/** What every action takes, as the form has it. */
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

/** Resolves the case of an action if the form asks for it. */
export async function resolveCaseIfTicked(
  pod: Pick<Pod, 'db' | 'jobs' | 'config' | 'now' | 'requestContext'>,
  request: FastifyRequest,
): Promise<void> {
  const caseId = formNumber(request, 'case_id')
  if (caseId === undefined || !isTicked(request, 'resolve')) return
  await resolveCase(pod, request.console.actor, caseId, { reason: formText(request, 'reason') })
}
