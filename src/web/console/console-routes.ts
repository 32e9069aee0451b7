import type { FastifyPluginAsync } from 'fastify'
import { Refusal } from '../../domain/refusals.js'
import { addRoutes } from '../server/add-routes.js'
import { addBodyReaders } from '../server/bodies.js'
import { handleError } from '../server/error-handler.js'
import { addValidation } from '../server/schemas/validation.js'
import { addConsoleAccess } from './access.js'
import { sendRefusalPage } from './actions.js'
import { deadLetterRoutes } from './dead-letters.js'
import { deliveryRoutes } from './deliveries.js'
import { addFormKeys } from './form-keys.js'
import { CONSOLE_LIMITS } from './limits.js'
import { checkRoutes } from './machine/checks.js'
import { machineRoutes } from './machine/machine-pages.js'
import { settingRoutes } from './machine/settings.js'
import { auditRoutes } from './moderation/audit.js'
import { clusterRoutes } from './moderation/clusters.js'
import { contentRoutes } from './moderation/content.js'
import { filterRoutes } from './moderation/filters.js'
import { peopleRoutes } from './moderation/people.js'
import { podRuleImportRoutes } from './moderation/pod-rules/pod-rule-imports.js'
import { podRuleRoutes } from './moderation/pod-rules/pod-rules.js'
import { podRoutes } from './moderation/pods.js'
import { reportRoutes } from './moderation/reports.js'
import { roleRoutes } from './moderation/roles.js'
import { invitationRoutes } from './moderation/sign-ups/invitations.js'
import { networkRuleRoutes } from './moderation/sign-ups/network-rules.js'
import { signUpRoutes } from './moderation/sign-ups/sign-ups.js'
import { overviewRoutes } from './overview.js'
import { quarantineRoutes } from './quarantine.js'
import { queueRoutes } from './queues.js'
import { traceRoutes } from './traces.js'

const MODERATION_PAGES = [
  overviewRoutes,
  reportRoutes,
  contentRoutes,
  peopleRoutes,
  podRoutes,
  podRuleRoutes,
  filterRoutes,
  clusterRoutes,
  signUpRoutes,
  invitationRoutes,
  networkRuleRoutes,
  auditRoutes,
  roleRoutes,
]
const OPERATION_PAGES = [
  queueRoutes,
  deadLetterRoutes,
  quarantineRoutes,
  deliveryRoutes,
  machineRoutes,
  checkRoutes,
  settingRoutes,
  traceRoutes,
]

/** The web console for moderators and admins. It works without JavaScript. */
export const consoleRoutes: FastifyPluginAsync = async (app) => {
  await addBodyReaders(app)
  addValidation(app, 'read')
  app.addHook('onRoute', (route) => {
    route.bodyLimit = CONSOLE_LIMITS.bodyBytes
  })
  addConsoleAccess(app)
  addFormKeys(app)
  app.setErrorHandler((error, request, reply) => {
    if (!(error instanceof Refusal) || request.consoleAccess === undefined) return handleError(error, request, reply)
    return sendRefusalPage(request, reply, error)
  })
  await addRoutes(app, [...MODERATION_PAGES, ...OPERATION_PAGES])
  await app.register(podRuleImportRoutes)
}
