import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import { changeRole } from '../../../domain/moderation/change-role.js'
import { getPersonDetails, listPeople } from '../../../domain/moderation/people/people.js'
import type { PersonRecord } from '../../../persistence/moderation/people-records.js'
import { formChoice, pathText } from '../../forms/form-fields.js'
import { formText } from '../../forms/form-text.js'
import { html, type Markup } from '../../pages/markup.js'
import { addFormAction } from '../actions.js'
import { sendConsolePage } from '../console-page.js'
import { actionForm, buildChoices, filterForm, hiddenField, reasonField, select, textField } from '../form-parts.js'
import { formatCount } from '../quantities.js'
import { listCard } from '../tables.js'
import { addressOfPerson, userNameIn } from './person-actions.js'

const ROLES = ['none', 'moderator', 'admin'] as const
const STAFF_SHOWN = 100

/** `/admin/roles`: moderators and admins. */
export const roleRoutes: FastifyPluginAsync = async (app) => {
  app.get('/admin/roles', { config: { power: 'administration' }, schema: { hide: true } }, async (request, reply) => {
    const { actor } = request.console
    const staff: PersonRecord[] = []
    for (const role of ['admin', 'moderator'] as const) {
      staff.push(...(await listPeople(request.services, actor, { role, isLocal: true }, { limit: STAFF_SHOWN })).items)
    }
    const search = html`${hiddenField('local', 'true')}${textField('Name or address', 'q')}`
    return sendConsolePage(request, reply, {
      title: `Roles: ${formatCount(staff.length)} moderators and admins`,
      content: html`<section class="card">${listCard(staffTable(staff), { empty: 'No account has a role.' })}</section>
<section class="card"><h2>Find an account</h2><p>The page of a person has a form for the role.</p>${filterForm('/admin/people', search)}</section>`,
    })
  })

  addFormAction(app, {
    path: '/admin/people/:guid/role',
    power: 'administration',
    title: 'Change the role',
    flash: 'role_changed',
    page: '/admin/roles',
    current: async (request) => {
      const { role } = await getPersonDetails(request.services, request.console.actor, pathText(request, 'guid'))
      return { version: role ?? 'none', state: html`<p>${role ?? 'none'}</p>` }
    },
    label: async (request) => userNameIn(await addressOfPerson(request, pathText(request, 'guid'))),
    run: (request, confirm) =>
      changeRole(request.services, request.console.actor, pathText(request, 'guid'), {
        role: formChoice(request, 'role', ROLES) ?? 'none',
        reason: formText(request, 'reason'),
        confirm,
      }),
  })
}

/** The form with which an admin gives a local person a role, or takes it. */
export function roleForm(request: FastifyRequest, { guid, role }: PersonRecord): Markup {
  const content = html`${select('Role', 'role', buildChoices(ROLES), role ?? 'none')}${reasonField()}<button class="quiet">Change the role…</button>`
  return actionForm(request, `/admin/people/${encodeURIComponent(guid)}/role`, content, { version: role ?? 'none' })
}

function staffTable(staff: readonly PersonRecord[]) {
  return {
    caption: 'Admins, then moderators',
    columns: [{ title: 'Address' }, { title: 'Role' }, { title: 'State' }],
    rows: staff.map(({ guid, address, role, state }) => [
      html`<a href="/admin/people/${encodeURIComponent(guid)}"><bdi>${address}</bdi></a>`,
      role ?? 'none',
      state,
    ]),
  }
}
