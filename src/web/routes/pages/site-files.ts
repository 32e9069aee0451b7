import type { FastifyPluginAsync } from 'fastify'
import { OIDC_PATHS } from '../../oidc/paths.js'
import { readAsset } from '../../pages/assets.js'
import { ICON_PATH } from '../../pages/html.js'
import { PASSKEY_SCRIPT } from '../../pages/passkey-form.js'
import { DEFAULT_AVATAR_PATH } from '../../presenters/people.js'
import { isNotModified } from '../../server/entity-tags.js'
import { pageFault } from '../../server/request-faults.js'
import { IMPORT_SCRIPT } from '../../settings/imports/paths.js'

const A_DAY = 86_400

/** Posts and people may be indexed. The pages of people who do not want it have a `robots` tag. */
const ROBOTS = `User-agent: *
Disallow: /api/
Disallow: /fetch/
Disallow: /language
Disallow: /link
Disallow: /settings/
Disallow: /users/
`

const files = [
  // Shown by other pods and by clients of any origin. The second path is that of diaspora*.
  {
    paths: [DEFAULT_AVATAR_PATH, '/assets/user/default-:hash([0-9a-f]{32,64}).png'],
    file: 'default-avatar.png',
    type: 'image/png',
    headers: { 'cross-origin-resource-policy': 'cross-origin', 'access-control-allow-origin': '*' },
  },
  { paths: [ICON_PATH], file: 'favicon.svg', type: 'image/svg+xml', headers: {} },
  { paths: [IMPORT_SCRIPT], file: 'import.js', type: 'text/javascript; charset=utf-8', headers: {} },
  { paths: [PASSKEY_SCRIPT], file: 'passkeys.js', type: 'text/javascript; charset=utf-8', headers: {} },
]

/** Files that browsers, search engines and other pods request. */
export const siteFileRoutes: FastifyPluginAsync = async (app) => {
  const quiet = { config: { public: true, quiet: true }, schema: { hide: true } } as const
  app.get('/robots.txt', quiet, async (_request, reply) =>
    reply.type('text/plain; charset=utf-8').header('cache-control', `public, max-age=${A_DAY}`).send(ROBOTS),
  )
  // Browsers request it for pages that name no icon.
  app.get('/favicon.ico', quiet, async (_request, reply) =>
    reply.header('cache-control', `public, max-age=${A_DAY}`).redirect(ICON_PATH, 301),
  )

  for (const { paths, file, type, headers } of files) {
    const { etag, bytes } = await readAsset(file)
    for (const path of paths) {
      app.get(
        path,
        { config: { public: true, quiet: true, headers }, schema: { hide: true } },
        async (request, reply) => {
          reply.header('cache-control', `public, max-age=${A_DAY}`).header('etag', etag)
          return isNotModified(request, etag) ? reply.code(304).send() : reply.type(type).send(bytes)
        },
      )
    }
  }

  // Links of a pod that was taken over. Its invitation codes are not.
  app.get('/login', quiet, async (_request, reply) => reply.redirect(OIDC_PATHS.signIn, 302))
  app.get('/i/:token', quiet, async (_request, reply) => {
    if (app.services.config.registrations !== 'open') throw pageFault(404, 'error.not_found')
    return reply.redirect(OIDC_PATHS.signUp, 302)
  })
}
