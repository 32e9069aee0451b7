import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { revokeAuthorization } from '../../domain/accounts/authorizations.js'
import { formText } from '../forms/form-text.js'
import { pageFault } from '../server/request-faults.js'
import { getBrowser } from './browser.js'
import { OIDC_PATHS } from './paths.js'

/** Revokes the access of an application, on the path of diaspora*. */
export const revocationRoutes: FastifyPluginAsync = async (app) => {
  const config = { public: true, refusals: { authorization_missing: 404 } } as const
  const schema = { hide: true }

  async function revokeAccess(request: FastifyRequest, reply: FastifyReply) {
    const browser = await getBrowser(app, request, reply)
    const address = await browser.findSignedInAddress()
    if (address === undefined) return reply.redirect(OIDC_PATHS.signIn, 303)
    browser.checkForm(formText(request, 'form'))
    const { id } = request.params as { readonly id: string } // part of both routes below
    if (!/^[1-9][0-9]{0,14}$/.test(id)) throw pageFault(404, 'error.application_over')
    await revokeAuthorization(request.services, address, Number(id))
    return reply.redirect('/settings/applications', 303)
  }
  // POST as well, because HTML forms cannot send DELETE.
  app.post(`${OIDC_PATHS.consent}/:id`, { config, schema }, revokeAccess)
  app.delete(`${OIDC_PATHS.consent}/:id`, { config, schema }, revokeAccess)
}
