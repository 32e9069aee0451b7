import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { hideContentOfPerson, removeContentOfPerson } from '../../../domain/moderation/people/content-of-person.js'
import { deletePurgedPerson, purgePerson } from '../../../domain/moderation/people/purge-person.js'
import {
  actionBody,
  actionRefusals,
  actionResponse,
  silent,
  targetRefusals,
} from '../../schemas/moderation/moderation.js'
import { OperationSchema } from '../../schemas/moderation/pod-rule-imports.js'
import { getRequestActor } from './actor-of.js'
import { sendOperation } from './operations.js'

const tags = ['Moderated people']
const params = Type.Object({ guid: Type.String() })
const confirm = Type.Optional(Type.String({ description: 'The address of the person; of a local one the user name.' }))
const taskResponse = {
  202: Type.Object(
    { ...OperationSchema.properties, ...actionResponse },
    { description: 'The work in the background; `Location` leads to it.' },
  ),
}

const inForce = { 200: Type.Object(actionResponse, { description: 'The action was in force already.' }) }

const CHANGES = {
  hide_content: {
    operationId: 'hideContentOfPerson',
    summary: 'Hide the posts and comments of a person',
    description:
      'Hides all public posts, and comments on public posts, as one action with one undo. Works in the background.',
    run: hideContentOfPerson,
  },
  remove_content: {
    operationId: 'removeContentOfPerson',
    summary: 'Remove the posts and comments of a person',
    description:
      'Removes all public posts, and comments on public posts: retracted where a local person may do so, which is final; else hidden and kept away. Works in the background.',
    run: removeContentOfPerson,
  },
} as const

/** Changes of everything that a person has written, and deletions of remote people. */
export const contentOfPeopleRoutes: FastifyPluginAsyncTypebox = async (app) => {
  for (const [name, { run, ...words }] of Object.entries(CHANGES)) {
    app.post(
      `/people/:guid/${name}`,
      {
        schema: {
          tags,
          ...words,
          params,
          body: Type.Object({ ...actionBody, confirm, silent }),
          response: { ...inForce, ...taskResponse },
        },
        config: {
          scopes: ['moderation'],
          refusals: {
            ...actionRefusals,
            ...targetRefusals,
            person_not_found: 404,
            operation_running: 409,
            ...(name === 'remove_content' && { confirmation_needed: 409 }),
          },
        },
      },
      async (request, reply) => {
        const { reason, case_id: caseId, confirm: confirmed, silent: isSilent } = request.body
        const actor = await getRequestActor(request, 'moderation')
        const options = { reason, caseId, confirm: confirmed, withoutNotice: isSilent }
        const { task: work, ...outcome } = await run(request.services, actor, request.params.guid, options)
        if (work === undefined) return outcome
        return { ...sendOperation(reply, work), ...outcome }
      },
    )
  }

  app.post(
    '/people/:guid/purge',
    {
      schema: {
        operationId: 'purgePerson',
        tags,
        summary: 'Delete the content of a blocked remote person',
        description:
          'Ends all contacts, and deletes posts, photos, comments, likes and votes in the background. Posts and comments are not accepted again. The person stays known and blocked.',
        params,
        body: Type.Object({ ...actionBody, confirm }),
        response: taskResponse,
      },
      config: {
        scopes: ['administration'],
        refusals: {
          ...actionRefusals,
          person_not_found: 404,
          not_remote: 422,
          bad_transition: 409,
          confirmation_needed: 409,
          operation_running: 409,
        },
      },
    },
    async (request, reply) => {
      const { reason, case_id: caseId, confirm: confirmed } = request.body
      const actor = await getRequestActor(request, 'administration')
      const options = { reason, caseId, confirm: confirmed }
      const { task: work, ...outcome } = await purgePerson(request.services, actor, request.params.guid, options)
      return { ...sendOperation(reply, work), ...outcome }
    },
  )

  app.post(
    '/people/:guid/forget',
    {
      schema: {
        operationId: 'forgetPerson',
        tags,
        summary: 'Delete a remote person',
        description: 'For a person without stored content. A message or a search makes them known again.',
        params,
        body: Type.Object({ ...actionBody, confirm }),
        response: { 200: Type.Object(actionResponse, { description: 'The person is deleted.' }) },
      },
      config: {
        scopes: ['administration'],
        refusals: {
          ...actionRefusals,
          person_not_found: 404,
          not_remote: 422,
          person_in_use: 409,
          confirmation_needed: 409,
        },
      },
    },
    async (request) => {
      const { reason, case_id: caseId, confirm: confirmed } = request.body
      const actor = await getRequestActor(request, 'administration')
      return deletePurgedPerson(request.services, actor, request.params.guid, { reason, caseId, confirm: confirmed })
    },
  )
}
