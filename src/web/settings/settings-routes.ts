import type { FastifyPluginAsync } from 'fastify'
import { addRemoteSearch } from '../limits/remote-search.js'
import { OIDC_LIMITS } from '../oidc/limits.js'
import { OIDC_PATHS } from '../oidc/paths.js'
import { addRoutes } from '../server/add-routes.js'
import { addBodyReaders } from '../server/bodies.js'
import { addValidation } from '../server/schemas/validation.js'
import { addSignedInAccess } from './access.js'
import { applicationRoutes } from './applications.js'
import { blockRoutes } from './blocks.js'
import { closeRoutes } from './close.js'
import { confirmAccessRoutes } from './confirm-access.js'
import { dataRoutes } from './data.js'
import { emailRoutes } from './email.js'
import { exportPageRoutes } from './exports.js'
import { followingRoutes } from './following.js'
import { importPageRoutes } from './imports/import-routes.js'
import { invitationPageRoutes } from './invitations.js'
import { mailRoutes } from './mail.js'
import { noticeRoutes } from './notices.js'
import { overviewRoutes } from './overview.js'
import { passkeyRoutes } from './passkeys.js'
import { passwordRoutes } from './password.js'
import { profileRoutes } from './profile.js'
import { sessionRoutes } from './sessions.js'
import { sharingRoutes } from './sharing.js'
import { twoFactorRoutes } from './two-factor.js'

/** The pages of diaspora*, to which its users and clients have links. */
const OTHER_PATHS: Readonly<Record<string, string>> = {
  '/user/edit': '/settings',
  '/privacy': '/settings/blocks',
  '/profile/edit': '/settings/profile',
  '/two_factor_authentication': '/settings/two_factor',
  [OIDC_PATHS.applications]: '/settings/applications',
}

/** The settings of the signed-in person. The pages work without JavaScript. */
export const settingsRoutes: FastifyPluginAsync = async (app) => {
  for (const [path, target] of Object.entries(OTHER_PATHS)) {
    app.get(path, { config: { public: true }, schema: { hide: true } }, async (_request, reply) =>
      reply.redirect(target, 303),
    )
  }
  await app.register(async (pages) => {
    await addBodyReaders(pages)
    addValidation(pages, 'read')
    pages.addHook('onRoute', (route) => {
      route.bodyLimit = OIDC_LIMITS.settingsBodyBytes
    })
    addSignedInAccess(pages)
    addRemoteSearch(pages)
    await addRoutes(pages, [
      overviewRoutes,
      sharingRoutes,
      followingRoutes,
      blockRoutes,
      emailRoutes,
      mailRoutes,
      passwordRoutes,
      sessionRoutes,
      applicationRoutes,
      noticeRoutes,
      invitationPageRoutes,
      exportPageRoutes,
      dataRoutes,
      twoFactorRoutes,
      passkeyRoutes,
      closeRoutes,
      confirmAccessRoutes,
    ])
    await pages.register(importPageRoutes)
    await pages.register(profileRoutes)
  })
}
