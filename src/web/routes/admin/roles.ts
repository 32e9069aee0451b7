import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { changeRole } from '../../../domain/moderation/change-role.js'
import { actionBody, actionRefusals, personResponse } from '../../schemas/moderation/moderation.js'
import { getRequestActor } from './actor-of.js'
import { withPerson } from './person-responses.js'

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
          200: Type.Object({ ...personResponse, role: Role }, { description: 'The person with the role now.' }),
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
      const actor = await getRequestActor(request, 'administration')
      const { guid } = request.params
      const outcome = await changeRole(request.services, actor, guid, { role, reason, caseId, confirm })
      return withPerson(request, actor, guid, outcome)
    },
  )
}
