import type { FastifyRequest } from 'fastify'
import { type ListedCase, readCaseState } from '../../../domain/moderation/cases.js'
import { formNumber } from '../../forms/form-fields.js'
import { html, type Markup } from '../../pages/markup.js'
import type { CurrentState } from '../actions.js'
import { formatTime } from '../quantities.js'
import { stateBadge } from '../tables.js'

const STATE_COLOURS = { open: 'warn', taken: 'neutral', resolved: 'good', dismissed: 'neutral' } as const

export function caseState({ state, takenBy }: ListedCase): Markup {
  return html`${stateBadge(state, STATE_COLOURS[state])}${takenBy !== null && html` by <bdi>${takenBy}</bdi>`}`
}

/** The case as it is now, for a form that was made from an earlier state. */
export async function currentCase({ services, console: access }: FastifyRequest, id: number): Promise<CurrentState> {
  const { found, decisions } = await readCaseState(services, access.actor, id)
  return { version: String(decisions), state: html`<p>${caseState(found)}, since ${formatTime(found.changedAt)}</p>` }
}

/** The case of a form on the page of a case; of any other form what `readTarget` reads. */
export function currentCaseOr(request: FastifyRequest, readTarget: () => Promise<CurrentState>): Promise<CurrentState> {
  const caseId = formNumber(request, 'case_id')
  return caseId === undefined ? readTarget() : currentCase(request, caseId)
}
