import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { blockForUser, listBlocks, unblockForUser } from '../../domain/people/blocks.js'
import { discoverSearchedPerson } from '../../federation/discovery/discover-searched-person.js'
import { Person } from '../../persistence/models/person.js'
import { formText } from '../forms/form-text.js'
import { textLine } from '../pages/controls.js'
import { translateMarkup } from '../pages/language/message-markup.js'
import { listNavigation } from '../pages/list-navigation.js'
import { html } from '../pages/markup.js'
import { presentName } from '../presenters/people.js'
import { readRowId } from '../schemas/numbers.js'
import { queryText } from '../schemas/query-text.js'
import { collectFieldErrors, type FieldErrors } from './field-errors.js'
import { redirectWithFlash, sendSettingsPage, settingsForm, submitButton } from './settings-page.js'

const PATH = '/settings/blocks'
const PEOPLE_SHOWN = 50
const REFUSALS = { person_not_found: 'network_id', own_person: 'network_id', already_blocked: 'network_id' } as const

/** The people whom the user blocks. */
export const blockRoutes: FastifyPluginAsync = async (app) => {
  const { services } = app
  const route = { config: { requires: 'session' }, schema: { hide: true } } as const

  async function show(request: FastifyRequest, reply: FastifyReply, errors: FieldErrors = []) {
    const { t } = request.signedIn
    const page = Math.max(1, readRowId(queryText(request, 'page') ?? '1'))
    const offset = (page - 1) * PEOPLE_SHOWN
    const { items, hasMore } = await listBlocks(request.services, request.signedIn.viewer, {
      offset,
      limit: PEOPLE_SHOWN,
    })
    const entries = items.map(
      (
        person,
      ) => html`<li><div><p><b><bdi>${presentName(person)}</bdi></b></p><p class="soft small"><bdi>${person.address}</bdi></p></div>
${settingsForm(
  request,
  html`<input type="hidden" name="guid" value="${person.guid}">
<button class="quiet" name="do" value="unblock">${translateMarkup(t, 'blocks.unblock', { name: presentName(person) })}</button>`,
)}</li>\n`,
    )
    return sendSettingsPage(request, reply, {
      title: t('settings.blocks'),
      errors,
      content: html`<section class="card"><p class="soft">${t('blocks.about')}</p>
${entries.length === 0 ? html`<p>${t('blocks.none')}</p>` : html`<ul class="entries">${entries}</ul>`}
${listNavigation(t, PATH, {}, { page, hasMore })}</section>
<section class="card"><h2>${t('blocks.block_person')}</h2>
${settingsForm(
  request,
  html`${textLine({
    name: 'network_id',
    label: t('blocks.address'),
    value: errors.length === 0 ? '' : (formText(request, 'network_id') ?? ''),
    hint: t('blocks.address_hint'),
    error: errors.find(({ field }) => field === 'network_id')?.message,
  })}${submitButton('block', t('blocks.block'))}`,
)}</section>`,
    })
  }

  app.get(PATH, route, (request, reply) => show(request, reply))

  app.post(PATH, route, async (request, reply) => {
    const { viewer } = request.signedIn
    if (formText(request, 'do') === 'unblock') {
      await collectFieldErrors(request.signedIn.t, { not_blocked: undefined, person_not_found: undefined }, () =>
        unblockForUser(request.services, viewer, formText(request, 'guid') ?? ''),
      )
      return redirectWithFlash(request, reply, 'unblocked')
    }
    const address = (formText(request, 'network_id') ?? '').trim().toLowerCase().replace(/^@/, '')
    await app.remoteSearch.runIfFree(viewer.userId, () => discoverSearchedPerson(request.services, address))
    const person = await Person.byAddress(services.db, address)
    const errors = await collectFieldErrors(request.signedIn.t, REFUSALS, () =>
      blockForUser(request.services, viewer, person?.guid ?? ''),
    )
    return errors.length > 0 ? show(request, reply, errors) : redirectWithFlash(request, reply, 'blocked')
  })
}
