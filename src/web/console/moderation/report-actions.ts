import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import {
  addCaseNote,
  dismissCase,
  releaseCase,
  reopenCase,
  resolveCase,
  takeCase,
} from '../../../domain/moderation/change-case.js'
import { forwardCase } from '../../../domain/moderation/forward-case.js'
import { isTicked, pathId } from '../../forms/form-fields.js'
import { formText } from '../../forms/form-text.js'
import { addFormAction, type FormAction, pathWithParameters, useCaseArguments } from '../actions.js'
import { sendConsolePage } from '../console-page.js'
import { forwardPage } from './case-page.js'
import { currentCase } from './case-state.js'

/** The forms of a case. */
export function addReportActions(app: FastifyInstance): void {
  const page = pathWithParameters('/admin/reports/:id')
  const add = (name: string, action: Pick<FormAction, 'title' | 'flash' | 'run'>) =>
    addFormAction(app, {
      ...action,
      path: `/admin/reports/:id/${name}`,
      power: 'moderation',
      page,
      current: (request) => currentCase(request, pathId(request)),
    })
  const reasonIn = (request: FastifyRequest) => formText(request, 'reason')

  add('take', {
    title: 'Take the case',
    flash: 'case_taken',
    run: (request) => takeCase(...useCaseArguments(request), { force: isTicked(request, 'force') }),
  })
  add('release', {
    title: 'Release the case',
    flash: 'case_released',
    run: (request) => releaseCase(...useCaseArguments(request), {}),
  })
  add('notes', {
    title: 'Add a note',
    flash: 'case_noted',
    run: (request) => addCaseNote(...useCaseArguments(request), { text: formText(request, 'text') ?? '' }),
  })
  add('resolve', {
    title: 'Resolve the case',
    flash: 'case_resolved',
    run: (request) =>
      resolveCase(...useCaseArguments(request), {
        reason: reasonIn(request),
        withoutAction: isTicked(request, 'without_action'),
      }),
  })
  add('dismiss', {
    title: 'Dismiss the case',
    flash: 'case_dismissed',
    run: (request) =>
      dismissCase(...useCaseArguments(request), {
        reason: reasonIn(request),
        ignoreFurther: isTicked(request, 'ignore_further'),
      }),
  })
  app.post('/admin/reports/:id/forward', { config: { power: 'moderation' }, schema: { hide: true } }, forward())
  add('reopen', {
    title: 'Open the case again',
    flash: 'case_reopened',
    run: (request) => reopenCase(...useCaseArguments(request), { reason: reasonIn(request) }),
  })
}

/** Shows the text for the operator of the other pod, or sends it. */
function forward() {
  return async (request: FastifyRequest, reply: FastifyReply) => {
    const id = pathId(request)
    const via = formText(request, 'via') === 'conversation' ? ('conversation' as const) : undefined
    const input = { via, includeReason: isTicked(request, 'include_reason') }
    const forwardedReport = await forwardCase(request.services, request.console.actor, id, input)
    if (!forwardedReport.sent) return sendConsolePage(request, reply, forwardPage(request, id, forwardedReport))
    return reply.redirect(`/admin/reports/${id}?flash=case_forwarded`, 303)
  }
}
