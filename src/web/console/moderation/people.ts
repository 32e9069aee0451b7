import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import { getPersonDetails, listPeople, readPerson } from '../../../domain/moderation/people/people.js'
import { PERSON_STATES, type PersonFilter, type PersonRecord } from '../../../persistence/moderation/people-records.js'
import { pathText } from '../../forms/form-fields.js'
import { html } from '../../pages/markup.js'
import { queryText } from '../../schemas/query-text.js'
import { readTime } from '../../schemas/times.js'
import { sendConsolePage } from '../console-page.js'
import { buildChoices, filterForm, moreText, select, textField } from '../form-parts.js'
import { idNavigation, idPageIn } from '../pager.js'
import { formatTime } from '../quantities.js'
import { listCard } from '../tables.js'
import { addPersonActions, listActionsOn } from './person-actions.js'
import { addContentActions } from './person-content.js'
import { personPage, personState } from './person-page.js'

const EMPTY =
  'No people match. Search for a part of a name, the beginning of an address, a pod, a state, a role, or the day since when the pod knows a person.'

/** `/admin/people`: local and remote people. */
export const peopleRoutes: FastifyPluginAsync = async (app) => {
  const config = { power: 'moderation' } as const
  const schema = { hide: true }

  app.get('/admin/people', { config, schema }, async (request, reply) => {
    const query = queryIn(request)
    const page = await listPeople(request.services, request.console.actor, filterOf(query), idPageIn(request))
    const pages = idNavigation('/admin/people', query, page)
    return sendConsolePage(request, reply, {
      title: page.items.length === 0 ? 'People: none found' : 'People',
      content: html`<section class="card">${filterForm('/admin/people', filterFields(query), moreFilters(query))}
${listCard(peopleTable(page.items), { empty: EMPTY, pages })}</section>`,
    })
  })

  app.get('/admin/people/:guid', { config, schema }, async (request, reply) => {
    const guid = pathText(request, 'guid')
    const isContactShown = queryText(request, 'contact') === 'show'
    const person = await (isContactShown ? readPerson : getPersonDetails)(request.services, request.console.actor, guid)
    const { items } = await listActionsOn(request, guid)
    return sendConsolePage(request, reply, personPage(request, person, { actions: items, isContactShown }))
  })

  addPersonActions(app)
  addContentActions(app)
}

const NAMES = ['q', 'local', 'state', 'role', 'pod', 'first_seen_after', 'email', 'ip', 'invited_by'] as const
type Query = Readonly<Record<(typeof NAMES)[number], string | undefined>>

function queryIn(request: FastifyRequest): Query {
  return Object.fromEntries(NAMES.map((name) => [name, queryText(request, name)?.trim()])) as Query // has each name
}

function filterOf({ q: text, local, state, role, pod, first_seen_after: after, ...query }: Query): PersonFilter {
  return {
    text,
    isLocal: local === undefined ? undefined : local === 'true',
    state: PERSON_STATES.find((each) => each === state),
    role: role === 'moderator' || role === 'admin' ? role : undefined,
    domain: pod?.toLowerCase(),
    email: query.email,
    ip: query.ip,
    invitedBy: query.invited_by,
    firstSeenAfter: after === undefined ? undefined : readTime('first_seen_after', after),
  }
}

function filterFields(query: Query) {
  return [
    textField('Name or address', 'q', query.q),
    select('Account', 'local', LOCAL, query.local),
    select('State', 'state', buildChoices(PERSON_STATES, 'all'), query.state),
  ]
}

function moreFilters(query: Query) {
  const role = select('Role', 'role', buildChoices(['moderator', 'admin'], 'all'), query.role)
  return [
    { value: query.role, field: role },
    moreText('Pod', 'pod', query.pod),
    moreText('First seen after', 'first_seen_after', query.first_seen_after, { type: 'date' }),
    moreText('Invited by (name, address or number of an invitation)', 'invited_by', query.invited_by),
  ]
}

const LOCAL = [
  ['', 'all'],
  ['true', 'on this pod'],
  ['false', 'on another pod'],
] as const

function peopleTable(people: readonly PersonRecord[]) {
  return {
    caption: 'People, those first seen last at the top',
    columns: [{ title: 'Address' }, { title: 'Name' }, { title: 'State' }, { title: 'Role' }, { title: 'First seen' }],
    rows: people.map((person) => [
      html`<a href="/admin/people/${encodeURIComponent(person.guid)}"><bdi>${person.address}</bdi></a>`,
      html`<bdi>${person.name}</bdi>`,
      personState(person),
      person.role ?? '–',
      formatTime(person.firstSeenAt),
    ]),
  }
}
