import type { FastifyPluginAsync } from 'fastify'
import { formPolicy } from '../pages/forms.js'
import { memberStartPage, startPage } from '../pages/start-page.js'
import { queryText } from '../schemas/query-text.js'
import { browserOf } from './browser.js'
import { OIDC_PATHS } from './paths.js'

/** `/`: one page for all visitors, and a page for each person who is signed in. */
export const startPageRoutes: FastifyPluginAsync = async (app) => {
  const { podName, host, registrations } = app.pod.config
  const visitors = startPage({
    podName,
    host,
    signUp: registrations === 'open' ? OIDC_PATHS.signUp : undefined,
    signIn: OIDC_PATHS.signIn,
  })

  app.get('/', { config: { public: true }, schema: { hide: true } }, async (request, reply) => {
    reply.type('text/html; charset=utf-8').header('vary', 'cookie')
    // Without cookies there is no session to read.
    const browser = request.headers.cookie === undefined ? undefined : await browserOf(app, request, reply)
    const address = await browser?.address()
    if (browser === undefined || address === undefined) {
      return reply.header('cache-control', 'public, max-age=300').send(visitors)
    }
    return reply
      .header('cache-control', 'private, no-store')
      .header('content-security-policy', formPolicy({ leadsToClient: false }))
      .send(
        memberStartPage({
          podName,
          host,
          address,
          formToken: browser.formToken(),
          signOut: OIDC_PATHS.signOut,
          isNew: queryText(request, 'welcome') !== undefined,
        }),
      )
  })
}
