import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { changeRole } from '../../../domain/moderation/change-role.js'
import { ActionSummary, actionBody, actionRefusals, Changed } from '../../schemas/moderation.js'
import { findRequestActor } from './actor-of.js'

const Role = Type.Enum(['none', 'moderator', 'admin'])

/** The roles of local people. */
export const roleRoutes: FastifyPluginAsyncTypebox = async (app) => {
  app.put(
    '/people/:guid/role',
    {
      schema: {
        operationId: 'changeRole',
        tags: ['Roles'],
        summary: 'Change the role of a local person',
        description: 'Takes effect at the next request of the person. The pod always keeps one admin.',
        params: Type.Object({ guid: Type.String() }),
        body: Type.Object({
          role: Role,
          ...actionBody,
          confirm: Type.Optional(Type.String({ description: 'The user name of the person.' })),
        }),
        response: {
          200: Type.Object(
            { action: Type.Optional(ActionSummary), changed: Changed, role: Role },
            { description: 'The role of the person now.' },
          ),
        },
      },
      config: {
        scopes: ['administration'],
        refusals: {
          ...actionRefusals,
          person_not_found: 404,
          not_local: 422,
          own_account: 422,
          last_admin: 409,
          confirmation_needed: 409,
        },
      },
    },
    async (request) => {
      const { role, reason, case_id: caseId, confirm } = request.body
      const actor = await findRequestActor(request, 'administration')
      return changeRole(request.pod, actor, request.params.guid, { role, reason, caseId, confirm })
    },
  )
}
