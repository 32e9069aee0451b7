import type { FastifyRequest } from 'fastify'
import { hasPower } from '../../../domain/accounts/role-powers.js'
import type { FilterInput, NewFilter } from '../../../domain/moderation/filters/filters.js'
import {
  FILTER_ACTIONS,
  FILTER_FIELDS,
  FILTER_KINDS,
  FILTER_ORIGINS,
  FILTER_STATES,
  type FilterRule,
} from '../../../persistence/moderation/filters.js'
import { formChoice, formNumber, formTexts, isTicked, requireChoice } from '../../forms/form-fields.js'
import { formText } from '../../forms/form-text.js'
import { html, type Markup } from '../../pages/markup.js'
import { RequestFault } from '../../server/request-faults.js'
import { actionForm, buildChoices, checkbox, reasonField, select, textField } from '../form-parts.js'

/** The filter that a form describes. Boxes that are not ticked are false. */
export function readNewFilter(request: FastifyRequest): NewFilter {
  const kind = formChoice(request, 'kind', FILTER_KINDS)
  const action = formChoice(request, 'action', FILTER_ACTIONS)
  if (kind === undefined || action === undefined) throw new RequestFault(422, 'A filter needs a kind and an action.')
  const fields = formTexts(request, 'fields').map((field) => requireChoice('fields', field, FILTER_FIELDS))
  const conditions: FilterInput = {
    ...(fields.length > 0 && { fields }),
    origin: formChoice(request, 'origin', FILTER_ORIGINS) ?? 'both',
    accountAgeDays: formNumber(request, 'account_age_days') ?? null,
    exemptFollowed: isTicked(request, 'exempt_followed'),
    isPrivate: isTicked(request, 'private'),
    state: formChoice(request, 'state', FILTER_STATES) ?? 'trial',
  }
  return { kind, value: formText(request, 'value') ?? '', action, ...conditions }
}

const DEFAULTS: FilterRule = {
  kind: 'word',
  value: '',
  fields: [],
  origin: 'both',
  accountAgeDays: null,
  exemptFollowed: true,
  isPrivate: false,
  action: 'count',
  state: 'trial',
}

/** A form for a filter: to try it, and to add it. The first button only tries. */
export function newFilterForm(request: FastifyRequest, given: Partial<FilterRule> = {}, days = 7): Markup {
  const filter = { ...DEFAULTS, ...given }
  const fields = html`${filterFields(request, filter)}${textField('Days to try (1 to 30)', 'days', String(days), { type: 'number' })}
<label>Reason (to add it)<input name="reason" maxlength="2000" autocomplete="off"></label>
<div class="buttons"><button class="quiet" formaction="/admin/filters/dry_run">Dry run</button><button>Add the filter</button></div>`
  return actionForm(request, '/admin/filters', fields)
}

/** A form that changes a filter. */
export function changeFilterForm(request: FastifyRequest, id: number, filter: FilterRule, version: string): Markup {
  const fields = html`${filterFields(request, filter)}${reasonField()}<button>Change the filter</button>`
  return actionForm(request, `/admin/filters/${id}/change`, fields, { version })
}

function filterFields(request: FastifyRequest, filter: FilterRule): Markup {
  const isAdmin = hasPower(request.console.staff.role, 'administration')
  const actions = FILTER_ACTIONS.filter((action) => isAdmin || action !== 'reject')
  const age = filter.accountAgeDays
  return html`${select('Kind', 'kind', buildChoices(FILTER_KINDS), filter.kind)}${textField('Value', 'value', filter.value, { required: true })}
<fieldset><legend>Where; nothing ticked: everywhere</legend>${FILTER_FIELDS.map((field) =>
    checkbox(field, 'fields[]', { value: field, isTicked: filter.fields.includes(field) }),
  )}</fieldset>
${select('Authors', 'origin', buildChoices(FILTER_ORIGINS), filter.origin)}${textField('Known for less than this number of days (optional)', 'account_age_days', age === null ? '' : String(age), { type: 'number' })}
${checkbox('Not people whom a local user follows', 'exempt_followed', { isTicked: filter.exemptFollowed })}${
  isAdmin && checkbox('Private content too; no text of it is kept', 'private', { isTicked: filter.isPrivate })
}${select('Action', 'action', buildChoices(actions), filter.action)}${select('State', 'state', buildChoices(FILTER_STATES), filter.state)}`
}
