import type { FastifyPluginAsync, FastifyRequest } from 'fastify'
import { hashToken } from '../../domain/accounts/token-hash.js'
import { findStoredForm } from '../../persistence/accounts/stored-forms.js'
import { formText } from '../forms/form-text.js'
import { OIDC_PATHS } from '../oidc/paths.js'
import { readReturnPath } from '../oidc/return-path.js'
import { queryText } from '../schemas/query-text.js'

/** The page that requires the password or a passkey before a change. Afterwards the submitted form continues. */
export const confirmAccessRoutes: FastifyPluginAsync = async (app) => {
  const route = { config: { requires: 'session' }, schema: { hide: true } } as const

  const ownForm = (returnTo: string | undefined) => ({
    path: OIDC_PATHS.confirmAccess,
    fields: { return_to: readReturnPath(returnTo) ?? '/settings' },
  })

  async function findForm(request: FastifyRequest) {
    const id = queryText(request, 'form')
    if (id === undefined) return undefined
    return findStoredForm(app.services.db, { idHash: hashToken(id), sessionUid: request.signedIn.session.uid })
  }

  app.get(OIDC_PATHS.confirmAccess, route, async (request, reply) => {
    const form = (await findForm(request)) ?? ownForm(queryText(request, 'return_to'))
    return app.stepUp.show(request, reply, request.signedIn, { form })
  })

  app.post(OIDC_PATHS.confirmAccess, route, async (request, reply) => {
    const form = ownForm(formText(request, 'return_to'))
    const refusalReply = await app.stepUp.check(request, reply, request.signedIn, form)
    return refusalReply ?? reply.redirect(form.fields.return_to, 303)
  })
}
