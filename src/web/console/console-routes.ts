import type { FastifyPluginAsync } from 'fastify'
import { Refusal } from '../../domain/refusals.js'
import { html } from '../pages/markup.js'
import { addBodyReaders } from '../server/bodies.js'
import { handleError } from '../server/error-handler.js'
import { addValidation } from '../server/validation.js'
import { addConsoleAccess } from './access.js'
import { sendConsolePage } from './console-page.js'
import { deadLetterRoutes } from './dead-letters.js'
import { CONSOLE_LIMITS } from './limits.js'
import { machineRoutes } from './machine-pages.js'
import { overviewRoutes } from './overview.js'
import { podRoutes } from './pods.js'
import { quarantineRoutes } from './quarantine.js'
import { queueRoutes } from './queues.js'
import { traceRoutes } from './traces.js'

/** The web console for moderators and admins. It works without JavaScript. */
export const consoleRoutes: FastifyPluginAsync = async (app) => {
  await addBodyReaders(app)
  addValidation(app, 'read')
  app.addHook('onRoute', (route) => {
    route.bodyLimit = CONSOLE_LIMITS.bodyBytes
  })
  addConsoleAccess(app)
  app.setErrorHandler((error, request, reply) => {
    if (!(error instanceof Refusal) || request.consoleAccess === undefined) return handleError(error, request, reply)
    return sendConsolePage(request, reply, {
      title: 'Nothing was changed',
      status: 422,
      content: html`<section class="card"><p class="alert" role="alert">${error.message}</p><p>Go back in your browser to correct the form.</p></section>`,
    })
  })
  for (const routes of [
    overviewRoutes,
    podRoutes,
    queueRoutes,
    deadLetterRoutes,
    quarantineRoutes,
    machineRoutes,
    traceRoutes,
  ]) {
    await app.register(routes)
  }
}
