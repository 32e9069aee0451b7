import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { findRelyingParty, type RelyingParty } from '../../../domain/accounts/factors/relying-party.js'
import { beginPasskeyUse, checkPasskey } from '../../../domain/accounts/factors/use-passkey.js'
import { endSessionsIfRevoked } from '../../../domain/accounts/sign-in.js'
import { formText } from '../../forms/form-text.js'
import { isFailedSignIn, limitAddresses } from '../../limits/address-limit.js'
import { countSignInFailure } from '../../limits/rejection-metrics.js'
import { passkeyPage } from '../../pages/accounts/passkey-page.js'
import { formPolicy } from '../../pages/forms.js'
import { textsFor } from '../../pages/language/request-language.js'
import { queryText } from '../../schemas/query-text.js'
import { pageFault } from '../../server/request-faults.js'
import { type Browser, getBrowser, readUiLocales } from '../browser.js'
import { OIDC_PATHS } from '../paths.js'
import { readReturnPath } from '../return-path.js'
import { type Destination, TO_KEEP_ACCOUNT, withDestination } from '../sign-in-destination.js'

/** Sign-in with a passkey, which counts as two factors. Where browsers offer no passkeys, there is no such page. */
export const passkeySignInRoutes: FastifyPluginAsync = async (app) => {
  const { services } = app
  const relyingParty = findRelyingParty(services)
  if (relyingParty === undefined) return
  const party: RelyingParty = relyingParty
  const config = { public: true } as const
  const schema = { hide: true }
  // Each page stores a challenge, and each attempt checks a signature.
  const pages = limitAddresses(services, 'authorizations')
  const attempts = limitAddresses(services, 'signIns', isFailedSignIn)

  async function show(request: FastifyRequest, reply: FastifyReply, { browser, destination, isRefused }: ShownPage) {
    const { uid, returnTo } = destination
    const interaction = uid === undefined ? undefined : await browser.getInteraction(uid)
    const t = textsFor(request, reply, { uiLocales: readUiLocales(interaction) })
    const formToken = browser.formToken()
    return reply
      .type('text/html; charset=utf-8')
      .header('content-security-policy', formPolicy({ mayLeadToClient: uid !== undefined, hasScript: true }))
      .send(
        passkeyPage({
          t,
          podName: services.config.podName,
          action: OIDC_PATHS.passkey,
          signIn: withDestination(OIDC_PATHS.signIn, destination),
          formToken,
          request: uid,
          returnTo,
          options: await beginPasskeyUse(request.services, party, { purpose: 'sign_in', browser: formToken }),
          error: isRefused ? { field: undefined, message: t('refusal.passkey_wrong') } : undefined,
        }),
      )
  }

  app.get(OIDC_PATHS.passkey, { config, schema, ...pages }, async (request, reply) => {
    const browser = await getBrowser(app, request, reply)
    const returnTo = readReturnPath(queryText(request, 'return_to'))
    const destination = { uid: queryText(request, 'request'), returnTo }
    return show(request, reply, { browser, destination, isRefused: false })
  })

  app.post(OIDC_PATHS.passkey, { config, schema, ...attempts }, async (request, reply) => {
    const browser = await getBrowser(app, request, reply)
    browser.checkForm(formText(request, 'form'))
    const uid = formText(request, 'request')
    const destination = { uid, returnTo: readReturnPath(formText(request, 'return_to')) }
    const interaction = uid === undefined ? undefined : await browser.getInteraction(uid)
    const use = { purpose: 'sign_in', browser: browser.formToken() } as const
    const user = await checkPasskey(request.services, party, { text: formText(request, 'passkey') ?? '', use })
    if (user === undefined) {
      countSignInFailure('credentials')
      return show(request, reply.code(422), { browser, destination, isRefused: true })
    }
    const { returnTo } = user.isClosing ? TO_KEEP_ACCOUNT : destination
    const login = { address: user.address, level: 'passkey' } as const
    const target = await browser.signIn(login, user.isClosing ? undefined : interaction, returnTo)
    browser.deleteSecondStep()
    if (await endSessionsIfRevoked(request.services, user)) throw pageFault(403, 'error.passkey_removed')
    return reply.redirect(target, 303)
  })
}

interface ShownPage {
  readonly browser: Browser
  readonly destination: Destination
  readonly isRefused: boolean
}
