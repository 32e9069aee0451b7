import type { FastifyPluginAsync } from 'fastify'
import { lacksStaffFactor } from '../../../domain/accounts/factors/second-factor.js'
import { addConditionalWrites, objectFinderOf } from '../../api/conditional-writes.js'
import { addIdempotency } from '../../api/idempotency.js'
import { addMissingObjectsFirst } from '../../api/missing-objects-first.js'
import { addTextValues } from '../../api/text-values.js'
import { addWriteLimit } from '../../limits/write-limit.js'
import { addRoutes } from '../../server/add-routes.js'
import { addBodyReaders } from '../../server/bodies.js'
import { addCompression } from '../../server/compression.js'
import { addEntityTags } from '../../server/entity-tags.js'
import { RequestFault } from '../../server/request-faults.js'
import { addValidation } from '../../server/schemas/validation.js'
import { actionRoutes } from './actions.js'
import { auditRoutes } from './audit.js'
import { caseRoutes } from './cases.js'
import { clusterRoutes } from './clusters.js'
import { CONDITIONAL_OBJECTS, REQUIRED_OBJECTS } from './conditional-objects.js'
import { contentRoutes } from './content.js'
import { contentOfPeopleRoutes } from './content-of-people.js'
import { deadLetterRoutes } from './dead-letters.js'
import { deliveryRoutes } from './deliveries.js'
import { filterRoutes } from './filters.js'
import { localPeopleRoutes } from './local-people.js'
import { machineRoutes } from './machine.js'
import { operationRoutes } from './operations.js'
import { peopleRoutes } from './people.js'
import { podRuleImportRoutes } from './pod-rule-imports.js'
import { podRuleRoutes } from './pod-rules.js'
import { podRoutes } from './pods.js'
import { quarantineRoutes } from './quarantine.js'
import { queueRoutes } from './queues.js'
import { roleRoutes } from './roles.js'
import { invitationRoutes } from './sign-ups/invitations.js'
import { networkRuleRoutes } from './sign-ups/network-rules.js'
import { signUpDecisionRoutes } from './sign-ups/sign-ups.js'
import { traceRoutes } from './traces.js'

/** The API for moderators and admins below `/api/admin/v1`. */
export const adminRoutes: FastifyPluginAsync = async (app) => {
  app.addHook('preHandler', async ({ services, viewer: { userId, role = null } }) => {
    if (!(await lacksStaffFactor(services, { userId, role }))) return
    throw new RequestFault(403, 'Your role needs a second factor: set one up in your settings.', {
      reason: 'role_needed',
    })
  })
  addWriteLimit(app)
  await addBodyReaders(app)
  addTextValues(app)
  addValidation(app)
  addIdempotency(app)
  addEntityTags(app)
  addMissingObjectsFirst(app, objectFinderOf(REQUIRED_OBJECTS))
  addConditionalWrites(app, CONDITIONAL_OBJECTS)
  addCompression(app)
  await addRoutes(app, [
    caseRoutes,
    contentRoutes,
    peopleRoutes,
    localPeopleRoutes,
    contentOfPeopleRoutes,
    filterRoutes,
    actionRoutes,
    clusterRoutes,
    auditRoutes,
    roleRoutes,
    queueRoutes,
    podRuleRoutes,
    operationRoutes,
    invitationRoutes,
    signUpDecisionRoutes,
    networkRuleRoutes,
    podRoutes,
    quarantineRoutes,
    deadLetterRoutes,
    deliveryRoutes,
    machineRoutes,
    traceRoutes,
  ])
  await app.register(podRuleImportRoutes)
}
