import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { clearProfile } from '../../../domain/moderation/people/clear-profile.js'
import { closePerson } from '../../../domain/moderation/people/close-person.js'
import { warnPerson } from '../../../domain/moderation/people/warn-person.js'
import { Timestamp } from '../../schemas/formats.js'
import {
  actionBody,
  actionRefusals,
  personResponse,
  podminRefusal,
  targetRefusals,
} from '../../schemas/moderation/moderation.js'
import { nullable } from '../../schemas/references.js'
import { getRequestActor } from './actor-of.js'
import { withPerson } from './person-responses.js'

const tags = ['Moderated people']
const params = Type.Object({ guid: Type.String() })
const refusals = { ...actionRefusals, ...targetRefusals, person_not_found: 404, not_local: 422 } as const

/** Actions on people with an account on this pod. */
export const localPeopleRoutes: FastifyPluginAsyncTypebox = async (app) => {
  app.post(
    '/people/:guid/warn',
    {
      schema: {
        operationId: 'warnPerson',
        tags,
        summary: 'Warn a local person',
        description:
          'The person sees the text after the next sign-in, and gets it in a conversation from the account that `PODMIN_ACCOUNT` names.',
        params,
        body: Type.Object({ ...actionBody, text: Type.String({ description: '1 to 2 000 characters.' }) }),
        response: { 200: Type.Object(personResponse, { description: 'The person is warned.' }) },
      },
      config: { scopes: ['moderation'], refusals: { ...refusals, text_invalid: { status: 422, field: 'text' } } },
    },
    async (request) => {
      const { reason, case_id: caseId, text } = request.body
      const actor = await getRequestActor(request, 'moderation')
      const { guid } = request.params
      return withPerson(request, actor, guid, await warnPerson(request.services, actor, guid, { reason, caseId, text }))
    },
  )

  app.post(
    '/people/:guid/clear_profile',
    {
      schema: {
        operationId: 'clearProfile',
        tags,
        summary: 'Clear the profile of a local person',
        description: 'Removes the picture, the name and all texts, and sends the profile to other pods.',
        params,
        body: Type.Object(actionBody),
        response: { 200: Type.Object(personResponse, { description: 'The profile is empty.' }) },
      },
      config: { scopes: ['moderation'], refusals },
    },
    async (request) => {
      const { reason, case_id: caseId } = request.body
      const { guid } = request.params
      const actor = await getRequestActor(request, 'moderation')
      return withPerson(request, actor, guid, await clearProfile(request.services, actor, guid, { reason, caseId }))
    },
  )

  app.post(
    '/people/:guid/close',
    {
      schema: {
        operationId: 'closeLocalAccount',
        tags,
        summary: 'Close a local account',
        description:
          'Sessions end and tokens are refused at once; the account is closed after `CLOSE_GRACE_DAYS`. Its owner cannot prevent it. The undo is possible until then. Admins can close an account `immediately`.',
        params,
        body: Type.Object({
          ...actionBody,
          confirm: Type.Optional(Type.String({ description: 'The user name.' })),
          immediately: Type.Optional(Type.Boolean({ description: 'Without grace period and undo; for admins.' })),
          retract_content: Type.Optional(
            Type.Boolean({ description: 'Retracts all comments and posts before the account is closed.' }),
          ),
        }),
        response: {
          200: Type.Object(
            { ...personResponse, close_at: nullable({ ...Timestamp, description: 'Null: the account is closed.' }) },
            { description: 'The account is closed, or will be.' },
          ),
        },
      },
      config: {
        scopes: ['moderation'],
        refusals: { ...refusals, ...podminRefusal, last_admin: 409, confirmation_needed: 409 },
      },
    },
    async (request) => {
      const { reason, case_id: caseId, confirm, immediately, retract_content: retractContent } = request.body
      const actor = await getRequestActor(request, 'moderation')
      const options = { reason, caseId, confirm, immediately, retractContent }
      const { guid } = request.params
      const { closeAt, ...outcome } = await closePerson(request.services, actor, guid, options)
      return withPerson(request, actor, guid, { ...outcome, close_at: closeAt?.toISOString() ?? null })
    },
  )
}
