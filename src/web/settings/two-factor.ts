import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { encode } from 'uqr'
import { findRelyingParty } from '../../domain/accounts/factors/relying-party.js'
import {
  confirmTotp,
  findOrMakeTotpSecret,
  hasFactor,
  renewRecoveryCodes,
  turnTotpOff,
} from '../../domain/accounts/factors/second-factor.js'
import { totpUrl } from '../../domain/accounts/factors/totp.js'
import { type Factors, findFactors } from '../../persistence/accounts/factors.js'
import { formText } from '../forms/form-text.js'
import { field } from '../pages/forms.js'
import { translateMarkup } from '../pages/language/message-markup.js'
import { html, type Markup, trustMarkup } from '../pages/markup.js'
import { queryText } from '../schemas/query-text.js'
import { collectFieldErrors, type FieldErrors } from './field-errors.js'
import { recoveryCodesCard } from './recovery-codes-card.js'
import { redirectWithFlash, sendSettingsPage, settingsForm, submitButton } from './settings-page.js'

const PATH = '/settings/two_factor'
const SET_UP = `${PATH}/set_up`
const REFUSALS = { code_wrong: 'code', factor_needed: undefined, totp_on: undefined, totp_off: undefined }

/** Authenticator app and recovery codes. Everything but the overview needs a recent proof. */
export const twoFactorRoutes: FastifyPluginAsync = async (app) => {
  const { services } = app
  const route = { config: { requires: 'session' }, schema: { hide: true } } as const
  const recent = { config: { requires: 'proof' }, schema: { hide: true } } as const

  async function show(request: FastifyRequest, reply: FastifyReply, errors: FieldErrors = []) {
    const { account, t } = request.signedIn
    const { userId } = account
    return sendSettingsPage(request, reply, {
      title: t('settings.two_factor'),
      errors,
      content: overview(request, await findFactors(services.db, userId), {
        isNeeded: queryText(request, 'needed') !== undefined,
        hasPasskeys: findRelyingParty(request.services) !== undefined,
      }),
    })
  }

  async function showSetUp(request: FastifyRequest, reply: FastifyReply, errors: FieldErrors = []) {
    const { userId, address } = request.signedIn.account
    const secret = await findOrMakeTotpSecret(request.services, userId, { keeps: errors.length > 0 })
    return sendSettingsPage(request, reply, {
      title: request.signedIn.t('factor.set_up_title'),
      errors,
      content: setUpCard(
        request,
        { secret, url: totpUrl(secret, { issuer: services.config.podName, label: address }) },
        errors,
      ),
    })
  }

  function showCodes(request: FastifyRequest, reply: FastifyReply, codes: readonly string[]) {
    const { t } = request.signedIn
    const content = recoveryCodesCard(t, codes, PATH)
    return sendSettingsPage(request, reply, { title: t('factor.your_codes'), content })
  }

  app.get(PATH, route, (request, reply) => show(request, reply))
  app.get(SET_UP, recent, async (request, reply) => {
    const { totp } = await findFactors(services.db, request.signedIn.account.userId)
    return totp ? reply.redirect(PATH, 303) : showSetUp(request, reply)
  })

  app.post(SET_UP, recent, async (request, reply) => {
    let codes: readonly string[] = []
    const errors = await collectFieldErrors(request.signedIn.t, REFUSALS, async () => {
      codes = await confirmTotp(request.services, request.signedIn.owner, formText(request, 'code') ?? '')
    })
    return errors.length > 0 ? showSetUp(request, reply, errors) : showCodes(request, reply, codes)
  })

  app.post(`${PATH}/recovery_codes`, recent, async (request, reply) => {
    let codes: readonly string[] = []
    const errors = await collectFieldErrors(request.signedIn.t, REFUSALS, async () => {
      codes = await renewRecoveryCodes(request.services, request.signedIn.owner)
    })
    return errors.length > 0 ? show(request, reply, errors) : showCodes(request, reply, codes)
  })

  app.post(PATH, recent, async (request, reply) => {
    const errors = await collectFieldErrors(request.signedIn.t, REFUSALS, () =>
      turnTotpOff(request.services, request.signedIn.owner),
    )
    return errors.length > 0 ? show(request, reply, errors) : redirectWithFlash(request, reply, 'factor_off')
  })
}

function overview(
  request: FastifyRequest,
  factors: Factors,
  { isNeeded, hasPasskeys }: { readonly isNeeded: boolean; readonly hasPasskeys: boolean },
): Markup {
  const { totp, recoveryCodesLeft: count } = factors
  const { t } = request.signedIn
  return html`${isNeeded && html`<p class="notice" role="status">${t('factor.needed')}</p>\n`}<section class="card"><h2>${t('factor.app')}</h2>
${
  totp
    ? html`<p>${translateMarkup(t, 'factor.app_on')}</p>
${settingsForm(request, html`<p class="actions"><button class="quiet">${t('factor.turn_off')}</button></p>`, PATH)}`
    : html`<p>${translateMarkup(t, 'factor.app_off')}</p>
<p class="actions"><a class="button" href="${SET_UP}">${t('factor.set_up')}</a></p>`
}</section>
${
  hasPasskeys &&
  html`<section class="card"><h2>${t('settings.passkeys')}</h2>
<p>${translateMarkup(t, 'passkey.count', { count: factors.passkeys })}</p>
<p class="actions"><a class="button" href="/settings/passkeys">${t('settings.passkeys')}</a></p></section>\n`
}${
  hasFactor(factors) &&
  html`<section class="card"><h2>${t('factor.codes')}</h2>
<p>${translateMarkup(t, 'factor.codes_left', { count })}</p>
${settingsForm(request, html`<p class="actions"><button class="quiet">${t('factor.new_codes')}</button></p>`, `${PATH}/recovery_codes`)}</section>`
}`
}

function setUpCard(
  request: FastifyRequest,
  { secret, url }: { readonly secret: string; readonly url: string },
  errors: FieldErrors,
): Markup {
  const { t } = request.signedIn
  const error = errors.find((each) => each.field === 'code')?.message
  const label = t('second_step.code')
  const code = { name: 'code', label, type: 'text', autocomplete: 'one-time-code', error, focus: true } as const
  return html`<section class="card"><h2>${t('factor.step_1')}</h2>
<p>${t('factor.scan')}</p>
${qrCode(url, t('factor.qr_code'))}
<p>${translateMarkup(t, 'factor.secret', { secret: (secret.match(/.{4}/g) ?? []).join(' ') })}</p></section>
<section class="card"><h2>${t('factor.step_2')}</h2>
<p class="soft">${t('factor.not_yet')}</p>
${settingsForm(request, html`${trustMarkup(field(code))}${submitButton('confirm', t('factor.turn_on'))}`, SET_UP)}</section>`
}

/** One path for all dark modules, on white in the dark mode as well. */
function qrCode(text: string, label: string): Markup {
  const { data, size } = encode(text, { ecc: 'M', border: 4 })
  const path = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : [])))
  return html`<svg class="qr" viewBox="0 0 ${size} ${size}" role="img" aria-label="${label}" shape-rendering="crispEdges"><path fill="#000" d="${path.join('')}"/></svg>`
}
