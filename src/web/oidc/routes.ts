import type { FastifyInstance, FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import type { Provider } from 'oidc-provider'
import { consoleRoutes } from '../console/console-routes.js'
import { limitAddresses } from '../limits/address-limit.js'
import { hasOnlyStorableText } from '../schemas/storable-text.js'
import { addRoutes } from '../server/add-routes.js'
import { addBodyReaders, refuseCompressed } from '../server/bodies.js'
import { pageFault } from '../server/request-faults.js'
import { addValidation } from '../server/schemas/validation.js'
import { settingsRoutes } from '../settings/settings-routes.js'
import { consentRoutes } from './consent.js'
import { describeIssuer } from './discovery.js'
import { passkeySignInRoutes } from './factors/passkey-sign-in.js'
import { secondStepRoutes } from './factors/second-step.js'
import { openStepUp } from './factors/step-up.js'
import { OIDC_LIMITS } from './limits.js'
import { confirmEmailRoutes } from './links/confirm-email.js'
import { passwordResetRoutes } from './links/password-reset.js'
import { unsubscribeRoutes } from './links/unsubscribe.js'
import { OIDC_PATHS } from './paths.js'
import { getProvider } from './provider.js'
import { registrationRoutes } from './registration.js'
import { revocationRoutes } from './revocations.js'
import { signInRoutes } from './sign-in.js'
import { signUpRoutes } from './sign-up.js'
import { startPageRoutes } from './start-page.js'
import { userInfoRoutes } from './user-info.js'

declare module 'fastify' {
  interface FastifyInstance {
    readonly provider: () => Promise<Provider>
  }
}

/** OpenID Connect on the paths of diaspora*, with the pages for sign-in, sign-up and consent. */
export const oidcRoutes: FastifyPluginAsync = async (app) => {
  const { url, oidcIssuer = url } = app.services.config
  app.decorate('provider', getProvider(app.services))
  app.addHook('onRequest', async ({ raw, ip }) => {
    raw.headers['x-forwarded-for'] = ip // of the headers, only those of a trusted proxy count
    // The library builds URLs from these headers. They are set to the URL of the pod, regardless of the request.
    raw.headers['x-forwarded-proto'] = new URL(url).protocol.slice(0, -1)
    raw.headers['x-forwarded-host'] = new URL(url).host
  })

  const issuer = describeIssuer(url, oidcIssuer)
  for (const path of [OIDC_PATHS.discovery, '/.well-known/oauth-authorization-server']) {
    app.get(path, { config: { public: true }, schema: { hide: true } }, async (_request, reply) =>
      reply.header('cache-control', 'public, max-age=3600').send(issuer),
    )
  }
  await app.register(providerRoutes)
  app.decorate('stepUp', openStepUp(app))
  await app.register(settingsRoutes)
  if (app.services.config.console) await app.register(consoleRoutes) // its people are signed in with sessions of the library
  await app.register(async (forms) => {
    await addBodyReaders(forms)
    addValidation(forms, 'read')
    forms.addHook('onRoute', (route) => {
      route.bodyLimit = OIDC_LIMITS.bodyBytes
    })
    // OpenID Connect allows POST here, but everything that follows is a page, so the browser continues with GET.
    forms.post(
      OIDC_PATHS.authorization,
      { config: { public: true }, schema: { hide: true } },
      async (request, reply) => {
        const fields = Object.entries(request.body ?? {}).filter(([, value]) => typeof value === 'string')
        return reply.redirect(`${OIDC_PATHS.authorization}?${new URLSearchParams(fields)}`, 303)
      },
    )
    await forms.register(registrationRoutes)
    await addRoutes(forms, [
      userInfoRoutes,
      signInRoutes,
      secondStepRoutes,
      passkeySignInRoutes,
      signUpRoutes,
      passwordResetRoutes,
      confirmEmailRoutes,
      unsubscribeRoutes,
      consentRoutes,
      revocationRoutes,
      startPageRoutes,
    ])
  })
}

/** Endpoints that the library serves itself, including the reading of bodies. */
const providerRoutes: FastifyPluginAsync = async (app) => {
  const config = { public: true } as const
  const schema = { hide: true }
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _payload, done) => done(null))
  app.addHook('onRequest', refuseCompressed)
  app.addHook('onRequest', async (request) => {
    if (Number(request.headers['content-length'] ?? 0) > OIDC_LIMITS.bodyBytes) {
      throw pageFault(413, 'error.too_large')
    }
    if (!hasOnlyStorableText(request.query)) {
      throw pageFault(400, 'error.client_characters')
    }
  })

  const tokenLimit = limitAddresses(app.services, 'tokens')

  // Limited, because each request stores a row and needs only the id of a client.
  app.get(
    OIDC_PATHS.authorization,
    { config, schema, ...limitAddresses(app.services, 'authorizations') },
    serveWithProvider,
  )
  app.get(`${OIDC_PATHS.authorization}/:request`, { config, schema }, serveWithProvider)
  app.get(OIDC_PATHS.jwks, { config, schema }, serveWithProvider)
  await app.register(async (clientEndpoints) => {
    clientEndpoints.addHook('onRequest', async ({ raw }) => {
      raw.headers.accept = 'application/json' // some clients prefer HTML in `accept`, but need JSON
    })
    clientEndpoints.post(OIDC_PATHS.token, { config, schema, ...tokenLimit }, serveWithProvider)
    clientEndpoints.post(OIDC_PATHS.revocation, { config, schema, ...tokenLimit }, serveWithProvider)
  })
}

async function serveWithProvider(this: FastifyInstance, request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const callback = (await this.provider()).callback()
  for (const [name, value] of Object.entries(reply.getHeaders())) {
    if (value !== undefined) reply.raw.setHeader(name, value)
  }
  reply.hijack()
  await callback(request.raw, reply.raw)
}
