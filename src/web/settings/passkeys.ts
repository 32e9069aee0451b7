import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import {
  addPasskey,
  beginPasskey,
  listPasskeys,
  type Passkey,
  removePasskey,
  renamePasskey,
} from '../../domain/accounts/factors/passkeys.js'
import { findRelyingParty, type RelyingParty } from '../../domain/accounts/factors/relying-party.js'
import { formText } from '../forms/form-text.js'
import { textLine } from '../pages/controls.js'
import { translateMarkup } from '../pages/language/message-markup.js'
import { html, type Markup } from '../pages/markup.js'
import { passkeyForm } from '../pages/passkey-form.js'
import { timeHtml } from '../pages/time.js'
import { readRowId } from '../schemas/numbers.js'
import { collectFieldErrors, type FieldErrors } from './field-errors.js'
import { recoveryCodesCard } from './recovery-codes-card.js'
import { redirectWithFlash, sendSettingsPage, settingsForm } from './settings-page.js'

const PATH = '/settings/passkeys'
const REMOVE = `${PATH}/remove`
const RENAME = `${PATH}/rename`
const ADD_REFUSALS = {
  passkey_name_invalid: 'name',
  passkey_invalid: undefined,
  passkey_known: undefined,
  too_many_passkeys: undefined,
}
const REMOVE_REFUSALS = { passkey_missing: undefined, factor_needed: undefined }

/** The passkeys of the account. Where browsers offer none, there is no such page. */
export const passkeyRoutes: FastifyPluginAsync = async (app) => {
  const { services } = app
  const relyingParty = findRelyingParty(services)
  if (relyingParty === undefined) return
  const party: RelyingParty = relyingParty
  const route = { config: { requires: 'proof' }, schema: { hide: true } } as const

  async function show(request: FastifyRequest, reply: FastifyReply, errors: FieldErrors = []) {
    const { owner, t } = request.signedIn
    const passkeys = await listPasskeys(request.services, owner.userId)
    return sendSettingsPage(request, reply, {
      title: t('settings.passkeys'),
      errors,
      hasScript: true,
      content: html`<section class="card"><p>${t('passkey.about')}</p>
${
  passkeys.length === 0
    ? html`<p class="soft">${t('passkey.none')}</p>`
    : html`<ul class="entries">${passkeys.map((passkey) => entry(request, passkey, errors))}</ul>`
}</section>
<section class="card"><h2>${t('passkey.add')}</h2>
${passkeyForm(t, {
  kind: 'make',
  action: PATH,
  button: t('passkey.add'),
  answer: 'passkey',
  options: await beginPasskey(request.services, owner, party),
  fields: html`<input type="hidden" name="form" value="${request.signedIn.session.formToken}">
${textLine({
  name: 'name',
  label: t('passkey.name'),
  hint: t('passkey.name_hint'),
  value: errors.length === 0 ? '' : (formText(request, 'name') ?? ''),
  error: errors.find(({ field }) => field === 'name')?.message,
})}`,
})}</section>`,
    })
  }

  app.get(PATH, route, (request, reply) => show(request, reply))

  app.post(PATH, route, async (request, reply) => {
    let codes: readonly string[] = []
    const newPasskey = { name: formText(request, 'name') ?? '', response: formText(request, 'passkey') ?? '' }
    const errors = await collectFieldErrors(request.signedIn.t, ADD_REFUSALS, async () => {
      codes = await addPasskey(request.services, request.signedIn.owner, party, newPasskey)
    })
    if (errors.length > 0) return show(request, reply, errors)
    if (codes.length === 0) return redirectWithFlash(request, reply, 'passkey_added')
    const { t } = request.signedIn
    const content = recoveryCodesCard(t, codes, PATH)
    return sendSettingsPage(request, reply, { title: t('factor.your_codes'), content })
  })

  app.post(RENAME, route, async (request, reply) => {
    const id = readRowId(formText(request, 'id') ?? '')
    const refusals = { passkey_name_invalid: nameFieldOf(id), passkey_missing: undefined }
    const errors = await collectFieldErrors(request.signedIn.t, refusals, () =>
      renamePasskey(request.services, { userId: request.signedIn.owner.userId, id }, formText(request, 'name') ?? ''),
    )
    return errors.length > 0 ? show(request, reply, errors) : reply.redirect(`${PATH}?flash=passkey_renamed`, 303)
  })

  app.post(REMOVE, route, async (request, reply) => {
    const errors = await collectFieldErrors(request.signedIn.t, REMOVE_REFUSALS, () =>
      removePasskey(request.services, request.signedIn.owner, readRowId(formText(request, 'id') ?? '')),
    )
    return errors.length > 0 ? show(request, reply, errors) : reply.redirect(`${PATH}?flash=passkey_removed`, 303)
  })
}

/** The field for the new name of a passkey: the page has one for each. */
function nameFieldOf(id: number): string {
  return `name-${id}`
}

function entry(request: FastifyRequest, passkey: Passkey, errors: FieldErrors): Markup {
  const { t } = request.signedIn
  const { id, name, createdAt, lastUsedAt, backedUp } = passkey
  const error = errors.find(({ field }) => field === nameFieldOf(id))?.message
  const details = [
    translateMarkup(t, 'passkey.added', { time: timeHtml(t, createdAt) }),
    ...(lastUsedAt === null ? [] : [translateMarkup(t, 'passkey.used', { time: timeHtml(t, lastUsedAt) })]),
    ...(backedUp ? [t('passkey.backed_up')] : []),
  ]
  return html`<li><div><p><b><bdi>${name}</bdi></b></p>
${details.map((detail) => html`<p class="soft small">${detail}</p>\n`)}
<details${error !== undefined && html` open`}><summary>${translateMarkup(t, 'passkey.rename', { name })}</summary>
${settingsForm(
  request,
  html`<input type="hidden" name="id" value="${id}">
${textLine({
  name: 'name',
  id: nameFieldOf(id),
  label: t('passkey.new_name'),
  error,
  value: error === undefined ? name : (formText(request, 'name') ?? ''),
})}<p class="actions"><button class="quiet">${t('common.save')}</button></p>`,
  RENAME,
)}</details></div>
${settingsForm(
  request,
  html`<input type="hidden" name="id" value="${id}">
<button class="quiet">${translateMarkup(t, 'passkey.remove', { name })}</button>`,
  REMOVE,
)}</li>\n`
}
