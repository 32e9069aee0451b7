import type { FastifyPluginAsync } from 'fastify'
import { expect, it } from 'vitest'
import { isScope } from '../../../src/domain/accounts/scopes.js'
import { buildApp } from '../../../src/web/server/app.js'
import { buildPod } from '../../support/pods/build-pod.js'

/** All routes that need no authentication. An addition to this list needs a security review. */
const PUBLIC = [
  '*',
  '/',
  '/.well-known/host-meta',
  '/.well-known/nodeinfo',
  '/.well-known/oauth-authorization-server',
  '/.well-known/openid-configuration',
  '/.well-known/webfinger',
  '/api/docs',
  '/api/docs/',
  '/api/docs/admin',
  '/api/docs/admin/',
  '/api/docs/admin/json',
  '/api/docs/admin/static/*',
  '/api/docs/admin/static/index.html',
  '/api/docs/admin/static/swagger-initializer.js',
  '/api/docs/admin/static/theme/pod.css',
  '/api/docs/admin/static/theme/pod.js',
  '/api/docs/admin/yaml',
  '/api/docs/json',
  '/api/docs/static/*',
  '/api/docs/static/index.html',
  '/api/docs/static/swagger-initializer.js',
  '/api/docs/static/theme/pod.css',
  '/api/docs/static/theme/pod.js',
  '/api/docs/yaml',
  '/api/openid_connect/access_tokens',
  '/api/openid_connect/authorizations',
  '/api/openid_connect/authorizations/:id',
  '/api/openid_connect/authorizations/new',
  '/api/openid_connect/authorizations/new/:request',
  '/api/openid_connect/clients',
  '/api/openid_connect/jwks.json',
  '/api/openid_connect/revoke',
  '/api/openid_connect/user_applications',
  '/apps',
  '/assets/import.js',
  '/assets/passkeys.js',
  '/assets/user/default-:hash([0-9a-f]{32,64}).png',
  '/favicon.ico',
  '/favicon.svg',
  '/fetch/:type/:guid',
  '/hcard/users/:guid',
  '/health/live',
  '/health/proxy',
  '/health/ready',
  '/i/:token',
  '/images/user/default.png',
  '/language',
  '/link',
  '/login',
  '/m/:token',
  '/nodeinfo/:version',
  '/oembed',
  '/p/:guid',
  '/people',
  '/people/:guid',
  '/people/:guid/follow',
  '/people/:guid/stream',
  '/posts/:guid',
  '/privacy',
  '/profile/edit',
  '/public',
  '/public/:name',
  '/receive/public',
  '/receive/users/:guid',
  '/robots.txt',
  '/tags/:name',
  '/two_factor_authentication',
  '/u/:name',
  '/uploads/images/:name',
  '/uploads/images/:person_guid/:name',
  '/user/edit',
  '/users/confirm_email',
  '/users/password/edit',
  '/users/sign_in',
  '/users/sign_in/passkey',
  '/users/sign_in/second_factor',
  '/users/sign_out',
  '/users/sign_up',
  '/users/undo_email',
]

it('every route that is not on the list of public ones names scopes or a power', async () => {
  await using pod = await buildPod()
  const routes = pod.app.knownRoutes

  const open = routes.filter(({ config }) => config?.public).map(({ url }) => url)
  expect([...new Set(open)].sort()).toEqual(PUBLIC)

  // Pages of a signed-in person; test/web/accounts/settings.test.ts requests each of them as a visitor.
  const signedInUrls = routes.filter(({ config }) => config?.requires).map(({ url }) => url)
  expect(signedInUrls.every((url) => /^\/(settings(\/|$)|users\/confirm_access$)/.test(url))).toBe(true)

  // Pages for staff; test/web/console/access.test.ts requests each of them with every role.
  expect(routes.filter(({ config }) => config?.power).every(({ url }) => /^\/admin(\/|$)/.test(url))).toBe(true)

  const closed = routes.filter(({ config }) => !config?.public && !config?.power && !config?.requires)
  expect(closed.map(({ url }) => url)).toContain('/api/v1/user')
  for (const { url, config } of closed) {
    expect([url, config?.scopes?.length]).not.toEqual([url, 0])
    expect([url, config?.scopes?.every(isScope)]).toEqual([url, true])
  }
})

it('a web process does not start with a route that declares no access', async () => {
  await using pod = await buildPod()
  const forgetful: FastifyPluginAsync = async (app) => {
    app.get('/forgotten', async () => 'a secret')
  }

  await expect(buildApp(pod.pod, { api: forgetful })).rejects.toThrow('GET /api/v1/forgotten')
})
