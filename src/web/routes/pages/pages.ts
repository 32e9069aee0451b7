import type { FastifyPluginAsync } from 'fastify'
import { OIDC_PATHS } from '../../oidc/paths.js'
import { readAsset } from '../../pages/assets.js'
import { escapeHtml, ICON_PATH, page } from '../../pages/html.js'
import { DEFAULT_AVATAR_PATH } from '../../presenters/people.js'

const A_DAY = 86_400

/** Posts and people may be indexed: whoever does not want that says so in their profile, and their pages say it. */
const ROBOTS = `User-agent: *
Disallow: /api/
Disallow: /fetch/
Disallow: /link
Disallow: /users/
`

const pictures = [
  // Shown by other pods and by clients, wherever they come from.
  {
    path: DEFAULT_AVATAR_PATH,
    file: 'default-avatar.png',
    type: 'image/png',
    headers: { 'cross-origin-resource-policy': 'cross-origin' },
  },
  { path: ICON_PATH, file: 'favicon.svg', type: 'image/svg+xml', headers: {} },
]

/** The few things people and other pods look at without a client. */
export const pageRoutes: FastifyPluginAsync = async (app) => {
  const { podName, host, registrations } = app.pod.config
  const signUp = registrations === 'open' ? `<a href="${OIDC_PATHS.signUp}">Create an account</a>` : ''
  const start = page({
    title: podName,
    content: `<h1>${escapeHtml(podName)}</h1>
<p class="soft">A pod of the diaspora* network</p>
<p>The people who live here have addresses like <code>somebody@${escapeHtml(host)}</code>. They write to, and hear from, people
on this pod and on all the others: there is no centre.</p>
<p>To use this pod, sign in with a client app and your address.</p>
<nav>${signUp}<a href="${OIDC_PATHS.applications}">Your applications</a><a href="/api/docs">API for client apps</a><a href="https://diasporafoundation.org">About diaspora*</a></nav>`,
  })

  app.get('/', { config: { public: true }, schema: { hide: true } }, async (_request, reply) =>
    reply.type('text/html; charset=utf-8').header('cache-control', 'public, max-age=300').send(start),
  )

  const quiet = { config: { public: true, quiet: true }, schema: { hide: true } } as const
  app.get('/robots.txt', quiet, async (_request, reply) =>
    reply.type('text/plain; charset=utf-8').header('cache-control', `public, max-age=${A_DAY}`).send(ROBOTS),
  )
  // Browsers ask for it wherever a page names no icon.
  app.get('/favicon.ico', quiet, async (_request, reply) =>
    reply.header('cache-control', `public, max-age=${A_DAY}`).redirect(ICON_PATH, 301),
  )

  for (const { path, file, type, headers } of pictures) {
    const { etag, bytes } = await readAsset(file)
    app.get(
      path,
      { config: { public: true, quiet: true, headers }, schema: { hide: true } },
      async (request, reply) => {
        reply.header('cache-control', `public, max-age=${A_DAY}`).header('etag', etag)
        return request.headers['if-none-match'] === etag ? reply.code(304).send() : reply.type(type).send(bytes)
      },
    )
  }
}
