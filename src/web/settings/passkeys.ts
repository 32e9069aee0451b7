import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import {
  addPasskey,
  beginPasskey,
  listPasskeys,
  type Passkey,
  removePasskey,
} from '../../domain/accounts/factors/passkeys.js'
import { type RelyingParty, relyingPartyOf } from '../../domain/accounts/factors/relying-party.js'
import { formText } from '../oidc/form-text.js'
import { textLine } from '../pages/controls.js'
import { html, type Markup, trusted } from '../pages/markup.js'
import { passkeyForm } from '../pages/passkey-form.js'
import { timeHtml } from '../pages/time.js'
import { readRowId } from '../schemas/numbers.js'
import { recoveryCodesCard } from './recovery-codes-card.js'
import { redirectWithNotice, sendSettingsPage, settingsForm } from './settings-page.js'
import { changeOrErrors, type FieldErrors } from './try-change.js'

const PATH = '/settings/passkeys'
const REMOVE = `${PATH}/remove`
const ADD_REFUSALS = {
  ...{ passkey_name_invalid: 'name', passkey_invalid: undefined, passkey_known: undefined },
  too_many_passkeys: undefined,
}
const REMOVE_REFUSALS = { passkey_missing: undefined, factor_needed: undefined }

/** The passkeys of the account. Where browsers offer none, there is no such page. */
export const passkeyRoutes: FastifyPluginAsync = async (app) => {
  const { pod } = app
  const found = relyingPartyOf(pod)
  if (found === undefined) return
  const party: RelyingParty = found
  const route = { config: { member: 'proof' }, schema: { hide: true } } as const

  async function show(request: FastifyRequest, reply: FastifyReply, errors: FieldErrors = []) {
    const { owner } = request.member
    const passkeys = await listPasskeys(pod, owner.userId)
    return sendSettingsPage(request, reply, {
      title: 'Passkeys',
      errors,
      runsScript: true,
      content: html`<section class="card"><p>A passkey signs you in without your password. It is stored on your device, by your browser, or on a security key.</p>
${
  passkeys.length === 0
    ? html`<p class="soft">You have no passkeys.</p>`
    : html`<ul class="entries">${passkeys.map((passkey) => entry(request, passkey))}</ul>`
}</section>
<section class="card"><h2>Add a passkey</h2>
${passkeyForm({
  ...{ kind: 'make', action: PATH, button: 'Add a passkey', answer: 'passkey' },
  options: await beginPasskey(pod, owner, party),
  fields: html`<input type="hidden" name="form" value="${request.member.session.formToken}">
${textLine({
  ...{ name: 'name', label: 'Name of the passkey', hint: 'Such as the device where it is.' },
  value: errors.length === 0 ? '' : (formText(request, 'name') ?? ''),
  error: errors.find(({ field }) => field === 'name')?.message,
})}`,
})}</section>`,
    })
  }

  app.get(PATH, route, (request, reply) => show(request, reply))

  app.post(PATH, route, async (request, reply) => {
    let codes: readonly string[] = []
    const made = { name: formText(request, 'name') ?? '', response: formText(request, 'passkey') ?? '' }
    const errors = await changeOrErrors(ADD_REFUSALS, async () => {
      codes = await addPasskey(pod, request.member.owner, party, made)
    })
    if (errors.length > 0) return show(request, reply, errors)
    if (codes.length === 0) return redirectWithNotice(request, reply, 'passkey_added')
    return sendSettingsPage(request, reply, { title: 'Your recovery codes', content: recoveryCodesCard(codes, PATH) })
  })

  app.post(REMOVE, route, async (request, reply) => {
    const errors = await changeOrErrors(REMOVE_REFUSALS, () =>
      removePasskey(pod, request.member.owner, readRowId(formText(request, 'id') ?? '')),
    )
    return errors.length > 0 ? show(request, reply, errors) : reply.redirect(`${PATH}?notice=passkey_removed`, 303)
  })
}

function entry(request: FastifyRequest, { id, name, createdAt, lastUsedAt, backedUp }: Passkey): Markup {
  return html`<li><div><p><b><bdi>${name}</bdi></b></p>
<p class="soft small">Added on ${trusted(timeHtml(createdAt))}${lastUsedAt !== null && html`, last used on ${trusted(timeHtml(lastUsedAt))}`}${backedUp && ', with copies on other devices'}</p></div>
${settingsForm(
  request,
  html`<input type="hidden" name="id" value="${id}">
<button class="quiet">Remove<span class="for-readers"> <bdi>${name}</bdi></span></button>`,
  REMOVE,
)}</li>\n`
}
