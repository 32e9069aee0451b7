import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import {
  authorizeClient,
  endSessionsOfUser,
  findGrantableScopes,
  revokeGrant,
} from '../../domain/accounts/authorizations.js'
import { findClient, type RegisteredClient } from '../../domain/accounts/clients.js'
import { readScopes, type Scope } from '../../domain/accounts/scopes.js'
import { formText } from '../forms/form-text.js'
import { consentPage } from '../pages/accounts/consent-page.js'
import { formPolicy } from '../pages/forms.js'
import { textsFor } from '../pages/language/request-language.js'
import { queryText } from '../schemas/query-text.js'
import { pageFault, type RequestFault } from '../server/request-faults.js'
import { getBrowser, readUiLocales } from './browser.js'
import { OIDC_PATHS } from './paths.js'

/** The page on which the signed-in user allows or denies a client the requested scopes. */
export const consentRoutes: FastifyPluginAsync = async (app) => {
  const { services } = app
  const config = { public: true } as const
  const schema = { hide: true }

  /** The pending request with its client, its user and the requested scopes. */
  async function getPendingConsent(request: FastifyRequest, reply: FastifyReply, uid: string | undefined) {
    const browser = await getBrowser(app, request, reply)
    const interaction = await browser.getInteraction(uid ?? '')
    const { params, prompt } = interaction
    const address = await browser.findSignedInAddress()
    const client = await findClient(request.services, String(params['client_id']))
    if (prompt.name !== 'consent' || address === undefined || client === undefined) throw noPendingRequest()
    const requestedScopes = readScopes(String(params['scope'] ?? '')).scopes
    const scopes = await findGrantableScopes(request.services, address, requestedScopes)
    return { browser, interaction, address, client, scopes, redirectUri: String(params['redirect_uri']) }
  }

  app.get(OIDC_PATHS.consent, { config, schema }, async (request, reply) => {
    const uid = queryText(request, 'request') ?? ''
    const { browser, interaction, address, client, scopes, redirectUri } = await getPendingConsent(request, reply, uid)
    return reply
      .type('text/html; charset=utf-8')
      .header('content-security-policy', formPolicy({ mayLeadToClient: true }))
      .send(
        consentPage({
          t: textsFor(request, reply, { uiLocales: readUiLocales(interaction) }),
          podName: services.config.podName,
          action: OIDC_PATHS.consent,
          formToken: browser.formToken(),
          request: uid,
          address,
          clientName: client.name ?? undefined,
          redirectUri,
          scopes,
        }),
      )
  })

  app.post(OIDC_PATHS.consent, { config, schema }, async (request, reply) => {
    const { browser, interaction, address, client, scopes } = await getPendingConsent(
      request,
      reply,
      formText(request, 'request'),
    )
    browser.checkForm(formText(request, 'form'))
    if (formText(request, 'approve') !== 'true') {
      const denial = { error: 'access_denied', error_description: 'the user denied the request' }
      return reply.redirect(await browser.finishInteraction(interaction, denial), 303)
    }
    const grantId = await authorizeClient(request.services, ownerOf(address, client), scopes satisfies readonly Scope[])
    const target = await browser.finishInteraction(interaction, { consent: { grantId } })
    if ((await browser.findSignedInAddress()) !== address) {
      // The access of the account was revoked in the meantime, so the new grant and session are revoked as well.
      await Promise.all([revokeGrant(request.services, grantId), endSessionsOfUser(request.services, address)])
      throw noPendingRequest()
    }
    return reply.redirect(target, 303)
  })
}

function ownerOf(
  address: string,
  { clientId }: RegisteredClient,
): { readonly address: string; readonly clientId: string } {
  return { address, clientId }
}

function noPendingRequest(): RequestFault {
  return pageFault(400, 'error.request_over')
}
