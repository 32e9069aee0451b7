import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { listAspects } from '../../domain/contacts/aspects.js'
import { addToAspect } from '../../domain/contacts/contacts.js'
import { followTag, listFollowedTags, unfollowTag } from '../../domain/streams/tag-followings.js'
import { discoverSearchedPerson } from '../../federation/discovery/discover-searched-person.js'
import { Person } from '../../persistence/models/person.js'
import { formText } from '../forms/form-text.js'
import { selectList, textLine } from '../pages/controls.js'
import { translateMarkup } from '../pages/language/message-markup.js'
import { html, type Markup } from '../pages/markup.js'
import { readRowId } from '../schemas/numbers.js'
import { tagPath } from '../text/write-html.js'
import { collectFieldErrors, type FieldErrors } from './field-errors.js'
import { redirectWithFlash, sendSettingsPage, settingsForm, submitButton } from './settings-page.js'

const ASPECTS_SHOWN = 1_000
const TAG_REFUSALS = { tag_invalid: 'tag', already_followed: 'tag', too_many_tags: 'tag' } as const
const PERSON_REFUSALS = {
  person_not_found: 'network_id',
  own_person: 'network_id',
  account_closed: 'network_id',
  person_blocked: 'network_id',
  already_in_aspect: 'aspect_id',
  aspect_not_found: 'aspect_id',
} as const

/** First steps without an app: following a tag, and a person by address. */
export const followingRoutes: FastifyPluginAsync = async (app) => {
  const { services } = app
  const path = '/settings/following'
  const route = { config: { requires: 'session' }, schema: { hide: true } } as const

  async function show(request: FastifyRequest, reply: FastifyReply, errors: FieldErrors = []) {
    const { t, viewer } = request.signedIn
    const [tags, { items: aspects }] = await Promise.all([
      listFollowedTags(request.services, viewer),
      listAspects(request.services, viewer, { offset: 0, limit: ASPECTS_SHOWN }),
    ])
    const errorOf = (name: string) => errors.find(({ field }) => field === name)?.message
    const personForm = html`${textLine({
      name: 'network_id',
      label: t('following.address'),
      hint: t('following.address_hint'),
      value: errors.length === 0 ? '' : (formText(request, 'network_id') ?? ''),
      error: errorOf('network_id'),
    })}${selectList({
      name: 'aspect_id',
      label: t('following.aspect'),
      error: errorOf('aspect_id'),
      options: aspects.map(({ id, name }) => [String(id), name] as const),
      chosen: formText(request, 'aspect_id') ?? String(aspects[0]?.id ?? ''),
    })}${submitButton('follow_person', t('following.person_button'))}`
    return sendSettingsPage(request, reply, {
      title: t('settings.following'),
      errors,
      content: html`${tagCard(request, tags, errorOf('tag'))}
<section class="card"><h2>${t('following.person')}</h2>
<p class="soft">${t('following.person_about')}</p>
${settingsForm(request, personForm)}</section>`,
    })
  }

  app.get(path, route, (request, reply) => show(request, reply))

  app.post(path, route, async (request, reply) => {
    const { t, viewer } = request.signedIn
    const tag = formText(request, 'tag') ?? ''
    switch (formText(request, 'do')) {
      case 'unfollow_tag':
        await collectFieldErrors(t, { not_followed: undefined }, () => unfollowTag(request.services, viewer, tag))
        return redirectWithFlash(request, reply, 'tag_unfollowed')
      case 'follow_tag': {
        const errors = await collectFieldErrors(t, TAG_REFUSALS, () => followTag(request.services, viewer, tag))
        return errors.length > 0 ? show(request, reply, errors) : redirectWithFlash(request, reply, 'tag_followed')
      }
      default: {
        const errors = await followPerson(request)
        return errors.length > 0 ? show(request, reply, errors) : redirectWithFlash(request, reply, 'person_followed')
      }
    }
  })

  async function followPerson(request: FastifyRequest): Promise<FieldErrors> {
    const { t, viewer } = request.signedIn
    const address = (formText(request, 'network_id') ?? '').trim().toLowerCase().replace(/^@/, '')
    await app.remoteSearch.runIfFree(viewer.userId, () => discoverSearchedPerson(request.services, address))
    const person = await Person.byAddress(services.db, address)
    const aspectId = readRowId(formText(request, 'aspect_id') ?? '')
    return collectFieldErrors(t, PERSON_REFUSALS, () =>
      addToAspect(request.services, viewer, { aspectId, personGuid: person?.guid ?? '' }),
    )
  }
}

function tagCard(request: FastifyRequest, tags: readonly string[], error: string | undefined): Markup {
  const { t } = request.signedIn
  const entries = tags.map(
    (tag) => html`<li><div><p><a href="${tagPath(tag)}"><bdi>#${tag}</bdi></a></p></div>
${settingsForm(
  request,
  html`<input type="hidden" name="tag" value="${tag}">
<button class="quiet" name="do" value="unfollow_tag">${translateMarkup(t, 'following.unfollow', { tag })}</button>`,
)}</li>\n`,
  )
  const form = html`${textLine({
    name: 'tag',
    label: t('following.tag_name'),
    hint: t('following.tag_hint'),
    error,
    value: error === undefined ? '' : (formText(request, 'tag') ?? ''),
  })}${submitButton('follow_tag', t('following.tag_button'))}`
  return html`<section class="card"><h2>${t('following.tag')}</h2>
<p class="soft">${t('following.tag_about')}</p>
${settingsForm(request, form)}
<h2>${t('following.tags')}</h2>
${entries.length === 0 ? html`<p>${t('following.no_tags')}</p>` : html`<ul class="entries">${entries}</ul>`}</section>`
}
