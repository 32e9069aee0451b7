import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { encode } from 'uqr'
import { relyingPartyOf } from '../../domain/accounts/factors/relying-party.js'
import {
  confirmTotp,
  type Factors,
  findFactors,
  findOrMakeTotpSecret,
  hasFactor,
  renewRecoveryCodes,
  turnTotpOff,
} from '../../domain/accounts/factors/second-factor.js'
import { totpUrl } from '../../domain/accounts/factors/totp.js'
import { formText } from '../oidc/form-text.js'
import { field } from '../pages/forms.js'
import { html, type Markup, trusted } from '../pages/markup.js'
import { queryText } from '../schemas/query-text.js'
import { recoveryCodesCard } from './recovery-codes-card.js'
import { doButton, redirectWithNotice, sendSettingsPage, settingsForm } from './settings-page.js'
import { changeOrErrors, type FieldErrors } from './try-change.js'

const PATH = '/settings/two_factor'
const SET_UP = `${PATH}/set_up`
const REFUSALS = { code_wrong: 'code', factor_needed: undefined, totp_on: undefined, totp_off: undefined }

/** Authenticator app and recovery codes. Everything but the overview needs a recent proof. */
export const twoFactorRoutes: FastifyPluginAsync = async (app) => {
  const { pod } = app
  const route = { config: { member: 'session' }, schema: { hide: true } } as const
  const recent = { config: { member: 'proof' }, schema: { hide: true } } as const

  async function show(request: FastifyRequest, reply: FastifyReply, errors: FieldErrors = []) {
    const { userId } = request.member.account
    return sendSettingsPage(request, reply, {
      title: 'Second factor',
      errors,
      content: overview(request, await findFactors(pod.db, userId), {
        isNeeded: queryText(request, 'needed') !== undefined,
        offersPasskeys: relyingPartyOf(pod) !== undefined,
      }),
    })
  }

  async function showSetUp(request: FastifyRequest, reply: FastifyReply, errors: FieldErrors = []) {
    const { userId, address } = request.member.account
    const secret = await findOrMakeTotpSecret(pod, userId, { keeps: errors.length > 0 })
    return sendSettingsPage(request, reply, {
      title: 'Set up the authenticator app',
      errors,
      content: setUpCard(
        request,
        { secret, url: totpUrl(secret, { issuer: pod.config.podName, label: address }) },
        errors,
      ),
    })
  }

  function showCodes(request: FastifyRequest, reply: FastifyReply, codes: readonly string[]) {
    return sendSettingsPage(request, reply, { title: 'Your recovery codes', content: recoveryCodesCard(codes, PATH) })
  }

  app.get(PATH, route, (request, reply) => show(request, reply))
  app.get(SET_UP, recent, async (request, reply) => {
    const { totp } = await findFactors(pod.db, request.member.account.userId)
    return totp ? reply.redirect(PATH, 303) : showSetUp(request, reply)
  })

  app.post(SET_UP, recent, async (request, reply) => {
    let codes: readonly string[] = []
    const errors = await changeOrErrors(REFUSALS, async () => {
      codes = await confirmTotp(pod, request.member.owner, formText(request, 'code') ?? '')
    })
    return errors.length > 0 ? showSetUp(request, reply, errors) : showCodes(request, reply, codes)
  })

  app.post(`${PATH}/recovery_codes`, recent, async (request, reply) => {
    let codes: readonly string[] = []
    const errors = await changeOrErrors(REFUSALS, async () => {
      codes = await renewRecoveryCodes(pod, request.member.owner)
    })
    return errors.length > 0 ? show(request, reply, errors) : showCodes(request, reply, codes)
  })

  app.post(PATH, recent, async (request, reply) => {
    const errors = await changeOrErrors(REFUSALS, () => turnTotpOff(pod, request.member.owner))
    return errors.length > 0 ? show(request, reply, errors) : redirectWithNotice(request, reply, 'factor_off')
  })
}

function overview(
  request: FastifyRequest,
  factors: Factors,
  { isNeeded, offersPasskeys }: { readonly isNeeded: boolean; readonly offersPasskeys: boolean },
): Markup {
  const { totp, recoveryCodesLeft } = factors
  return html`${isNeeded && html`<p class="notice" role="status">Your role on this pod needs a second factor. Set one up to continue.</p>\n`}<section class="card"><h2>Authenticator app</h2>
${
  totp
    ? html`<p>The authenticator app is <b>on</b>: a sign-in asks for its code after the password.</p>
${settingsForm(request, html`<p class="actions"><button class="quiet">Turn the app off</button></p>`, PATH)}`
    : html`<p>The authenticator app is <b>off</b>. With it, a stolen password is not enough to sign in.</p>
<p class="actions"><a class="button" href="${SET_UP}">Set up the app</a></p>`
}</section>
${
  offersPasskeys &&
  html`<section class="card"><h2>Passkeys</h2>
<p>You have <b>${factors.passkeys}</b> passkeys. A passkey signs you in alone, and replaces the code of the app.</p>
<p class="actions"><a class="button" href="/settings/passkeys">Passkeys</a></p></section>\n`
}${
  hasFactor(factors) &&
  html`<section class="card"><h2>Recovery codes</h2>
<p>You have <b>${recoveryCodesLeft}</b> unused codes. Each replaces your second factor once.</p>
${settingsForm(request, html`<p class="actions"><button class="quiet">Make new codes</button></p>`, `${PATH}/recovery_codes`)}</section>`
}`
}

function setUpCard(
  request: FastifyRequest,
  { secret, url }: { readonly secret: string; readonly url: string },
  errors: FieldErrors,
): Markup {
  const error = errors.find((each) => each.field === 'code')?.message
  const code = { name: 'code', label: 'Code', type: 'text', autocomplete: 'one-time-code', error, focus: true } as const
  return html`<section class="card"><h2>1. Add this site to the app</h2>
<p>Scan the picture with an authenticator app on your phone.</p>
${qrCode(url)}
<p>Or enter this secret: <code>${secret.match(/.{4}/g)?.join(' ')}</code></p></section>
<section class="card"><h2>2. Enter the code that the app shows</h2>
<p class="soft">Nothing is on before the code is right. Then you are signed out in all other browsers.</p>
${settingsForm(request, html`${trusted(field(code))}${doButton('confirm', 'Turn the app on')}`, SET_UP)}</section>`
}

/** One path for all dark modules, on white in the dark mode as well. */
function qrCode(text: string): Markup {
  const { data, size } = encode(text, { ecc: 'M', border: 4 })
  const path = data.flatMap((row, y) => row.flatMap((isDark, x) => (isDark ? `M${x} ${y}h1v1h-1z` : [])))
  return html`<svg class="qr" viewBox="0 0 ${size} ${size}" role="img" aria-label="QR code with the secret below" shape-rendering="crispEdges"><path fill="#000" d="${path.join('')}"/></svg>`
}
