import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { listModerationActions, undoAction } from '../../../domain/moderation/actions.js'
import { cursorPaging } from '../../api/cursor-paging.js'
import { linkIdPages, readIdPaging } from '../../api/id-paging.js'
import { presentAction } from '../../presenters/moderation.js'
import {
  ActionSchema,
  actionBody,
  actionRefusals,
  actionResponse,
  targetRefusals,
} from '../../schemas/moderation/moderation.js'
import { refTo } from '../../schemas/references.js'
import { getRequestActor } from './actor-of.js'

const tags = ['Actions']

/** The actions that were taken, and their undo. */
export const actionRoutes: FastifyPluginAsyncTypebox = async (app) => {
  app.get(
    '/actions',
    {
      schema: {
        operationId: 'listActions',
        tags,
        summary: 'List actions',
        description: 'Newest first, with the possibility of an undo.',
        querystring: Type.Object({
          kind: Type.Optional(Type.String({ description: 'For example `hide`, `remove`, `silence`.' })),
          target: Type.Optional(Type.String({ description: 'The guid of the target.' })),
          case_id: Type.Optional(Type.Integer({ maximum: Number.MAX_SAFE_INTEGER })),
          actor: Type.Optional(
            Type.String({ description: 'The user name, address or guid of a person, `command` or `system`.' }),
          ),
          in_force: Type.Optional(
            Type.Boolean({ description: 'Only actions that can be undone, or only the others.' }),
          ),
          ...cursorPaging,
        }),
        response: { 200: Type.Array(refTo(ActionSchema), { description: 'The actions.' }) },
      },
      config: { scopes: ['moderation'], refusals: { role_needed: 403 } },
    },
    async (request, reply) => {
      const { kind, target, case_id: caseId, actor: takenBy, in_force: inForce, ...paging } = request.query
      const filter = { kind, target, caseId, actor: takenBy, isInForce: inForce }
      const actor = await getRequestActor(request, 'moderation')
      const page = await listModerationActions(request.services, actor, filter, readIdPaging(paging))
      linkIdPages(request, reply, page)
      return page.items.map(presentAction)
    },
  )

  app.post(
    '/actions/:id/undo',
    {
      schema: {
        operationId: 'undoAction',
        tags,
        summary: 'Undo an action',
        description:
          'Restores what the action changed. Other actions on the same target stay in force. Retractions and deletions are final.',
        params: Type.Object({ id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }) }),
        body: Type.Object(actionBody),
        response: { 200: Type.Object(actionResponse, { description: 'The action is undone.' }) },
      },
      config: {
        scopes: ['moderation'],
        refusals: { ...actionRefusals, ...targetRefusals, action_not_found: 404, not_undoable: 409 },
      },
    },
    async (request) => {
      const { reason, case_id: caseId } = request.body
      return undoAction(request.services, await getRequestActor(request, 'moderation'), request.params.id, {
        reason,
        caseId,
      })
    },
  )
}
