import multipart from '@fastify/multipart'
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { getOwnProfile } from '../../domain/people/people.js'
import { changeProfile } from '../../domain/people/profiles.js'
import { uploadPhoto } from '../../domain/photos/uploads.js'
import type { Profile } from '../../persistence/models/person.js'
import { formText } from '../forms/form-text.js'
import { checkBox, textArea, textLine } from '../pages/controls.js'
import { html } from '../pages/markup.js'
import { presentAvatar } from '../presenters/people.js'
import { queryText } from '../schemas/query-text.js'
import { extendTimeLimit } from '../server/slow-requests.js'
import { readUploadForm } from '../uploads/upload-form.js'
import { collectFieldErrors, type FieldErrors } from './field-errors.js'
import { redirectWithFlash, sendSettingsPage, settingsForm, submitButton } from './settings-page.js'

const PICTURE = '/settings/profile/picture'

/** A birthday without a year is stored in this one. */
const NO_YEAR = '1004'

const REFUSALS = {
  name_invalid: 'name',
  bio_invalid: 'bio',
  location_invalid: 'location',
  gender_invalid: 'gender',
  birthday_invalid: 'birthday',
  tags_invalid: 'tags',
  filtered: undefined,
}

const UPLOAD_REFUSALS = { image_invalid: 'image', photo_quota: 'image' }

/** All fields of the profile, and its picture. */
export const profileRoutes: FastifyPluginAsync = async (app) => {
  const { services } = app
  await app.register(multipart, { throwFileSizeLimit: false })
  const route = { config: { requires: 'session' }, schema: { hide: true } } as const

  async function show(request: FastifyRequest, reply: FastifyReply, errors: FieldErrors = []) {
    const { t } = request.signedIn
    const { profile } = await getOwnProfile(request.services, request.signedIn.viewer)
    // After an error the form keeps the typed text.
    const isRepeated = errors.length > 0 && request.body !== undefined
    const typedOrStored = (name: string, stored: string | null) =>
      isRepeated ? (formText(request, name) ?? '') : (stored ?? '')
    const tickedOrStored = (name: string, isStored: boolean) =>
      isRepeated ? formText(request, name) !== undefined : isStored
    const errorOf = (name: string) => errors.find(({ field }) => field === name)?.message
    return sendSettingsPage(request, reply, {
      title: t('settings.profile'),
      errors,
      content: html`${pictureCard(request, profile, errorOf('image'))}
<section class="card"><h2>${t('profile.about_you')}</h2>
${settingsForm(
  request,
  html`${textLine({
    name: 'name',
    label: t('profile.name'),
    autocomplete: 'name',
    error: errorOf('name'),
    value: typedOrStored('name', [profile.firstName, profile.lastName].filter(Boolean).join(' ')),
  })}${textArea({ name: 'bio', label: t('profile.bio'), value: typedOrStored('bio', profile.bio), error: errorOf('bio') })}${textLine(
    {
      name: 'location',
      label: t('profile.place'),
      value: typedOrStored('location', profile.location),
      error: errorOf('location'),
    },
  )}${textLine({
    name: 'gender',
    label: t('profile.gender'),
    autocomplete: 'sex',
    value: typedOrStored('gender', profile.gender),
    error: errorOf('gender'),
  })}${textLine({
    name: 'birthday',
    label: t('profile.birthday'),
    autocomplete: 'bday',
    error: errorOf('birthday'),
    value: typedOrStored('birthday', shownBirthday(profile.birthday)),
    hint: t('profile.birthday_hint'),
  })}${textLine({
    name: 'tags',
    label: t('profile.tags'),
    value: typedOrStored('tags', profile.tags.join(' ')),
    error: errorOf('tags'),
    hint: t('profile.tags_hint'),
  })}${checkBox({
    name: 'searchable',
    label: t('profile.searchable'),
    checked: tickedOrStored('searchable', profile.searchable),
  })}${checkBox({
    name: 'show_profile_info',
    label: t('profile.public_details'),
    checked: tickedOrStored('show_profile_info', profile.publicDetails),
  })}${checkBox({
    name: 'nsfw',
    label: t('profile.nsfw'),
    checked: tickedOrStored('nsfw', profile.nsfw),
  })}${submitButton('save', t('common.save'))}`,
  '/settings/profile',
)}</section>`,
    })
  }

  app.get('/settings/profile', route, (request, reply) => show(request, reply))

  app.post('/settings/profile', route, async (request, reply) => {
    const text = (name: string) => formText(request, name) ?? ''
    const errors = await collectFieldErrors(request.signedIn.t, REFUSALS, () =>
      changeProfile(request.services, request.signedIn.viewer, {
        name: text('name'),
        bio: withUnixLines(text('bio')),
        location: text('location'),
        gender: text('gender'),
        birthday: readBirthday(text('birthday')),
        tags: text('tags')
          .split(/[\s,]+/)
          .filter((tag) => tag !== ''),
        searchable: text('searchable') !== '',
        publicDetails: text('show_profile_info') !== '',
        nsfw: text('nsfw') !== '',
      }),
    )
    return errors.length > 0 ? show(request, reply, errors) : redirectWithFlash(request, reply, 'saved')
  })

  app.post('/settings/profile/picture/remove', route, async (request, reply) => {
    await changeProfile(request.services, request.signedIn.viewer, { picture: null })
    return reply.redirect('/settings/profile?flash=saved', 303)
  })

  // The token is in the query, so that the file is read only if it is right.
  const withFile = { ...route, config: { ...route.config, checksForm: true } } as const
  app.post(PICTURE, withFile, async (request, reply) => {
    const { session, viewer } = request.signedIn
    session.checkForm(queryText(request, 'form'))
    extendTimeLimit(request.raw)
    const errors = await collectFieldErrors(request.signedIn.t, UPLOAD_REFUSALS, async () => {
      const { file } = await readUploadForm(request)
      await uploadPhoto(request.services, viewer, { file, use: 'profile' })
    })
    return errors.length > 0 ? show(request, reply, errors) : reply.redirect('/settings/profile?flash=saved', 303)
  })

  function pictureCard(request: FastifyRequest, profile: Profile, error: string | undefined) {
    const { t } = request.signedIn
    const hasPicture = profile.imageUrl !== null
    const token = request.signedIn.session.formToken
    return html`<section class="card"><h2>${t('profile.picture')}</h2>
<p><img class="face large" src="${presentAvatar(profile, services.config).medium}" alt="${t('profile.your_picture')}" width="88" height="88"></p>
<form method="post" action="${PICTURE}?form=${token}" enctype="multipart/form-data">
<p class="field"><label for="image">${t('profile.new_picture')}</label>${error !== undefined && html`<span class="wrong" id="image-error">${error}</span>`}
<input id="image" name="image" type="file" accept="image/jpeg,image/png,image/gif,image/webp" required${error !== undefined && html` aria-invalid="true" aria-describedby="image-error"`}></p>
<p class="actions"><button>${t('profile.use_picture')}</button></p></form>
${hasPicture && settingsForm(request, html`<p class="actions"><button class="quiet">${t('profile.remove_picture')}</button></p>`, `${PICTURE}/remove`)}</section>`
  }
}

/** Browsers send CR LF. */
function withUnixLines(text: string): string {
  return text.replaceAll('\r\n', '\n')
}

function shownBirthday(birthday: string | null): string | null {
  return birthday?.startsWith(`${NO_YEAR}-`) ? birthday.slice(5) : birthday
}

function readBirthday(typedDate: string): string {
  const text = typedDate.trim()
  return /^\d{2}-\d{2}$/.test(text) ? `${NO_YEAR}-${text}` : text
}
