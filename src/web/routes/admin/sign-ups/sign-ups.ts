import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import {
  approveSignUp,
  decideSignUps,
  listSignUps,
  rejectSignUp,
} from '../../../../domain/accounts/sign-ups/open-sign-up.js'
import { endUnattendedPeriod } from '../../../../domain/accounts/sign-ups/unattended.js'
import { cursorPaging } from '../../../api/cursor-paging.js'
import { linkIdPages, readIdPaging } from '../../../api/id-paging.js'
import { presentSignUp } from '../../../presenters/sign-ups.js'
import { actionBody, actionRefusals, Changed } from '../../../schemas/moderation/moderation.js'
import { refTo } from '../../../schemas/references.js'
import { SignUpSchema } from '../../../schemas/sign-ups.js'
import { getRequestActor } from '../actor-of.js'

const tags = ['Sign-ups']
const params = Type.Object({ id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }) })
const message = Type.Optional(Type.String({ maxLength: 1_000, description: 'A sentence for the person, in the mail.' }))
const refusals = { ...actionRefusals, sign_up_not_found: 404 } as const

/** Sign-ups that wait for a moderator. */
export const signUpDecisionRoutes: FastifyPluginAsyncTypebox = async (app) => {
  app.get(
    '/sign_ups',
    {
      schema: {
        operationId: 'listSignUps',
        tags,
        summary: 'List sign-ups',
        description: 'Those that wait for a decision, newest first.',
        querystring: Type.Object(cursorPaging),
        response: { 200: Type.Array(refTo(SignUpSchema), { description: 'The sign-ups.' }) },
      },
      config: { scopes: ['moderation'], refusals: { role_needed: 403 } },
    },
    async (request, reply) => {
      const page = await listSignUps(
        request.services,
        await getRequestActor(request, 'moderation'),
        readIdPaging(request.query),
      )
      linkIdPages(request, reply, page)
      return page.items.map(presentSignUp)
    },
  )

  app.post(
    '/sign_ups/:id/approve',
    {
      schema: {
        operationId: 'approveSignUp',
        tags,
        summary: 'Approve a sign-up',
        description: 'The account opens at once, or when its e-mail address is confirmed.',
        params,
        body: Type.Object({ reason: actionBody.reason }),
        response: { 200: Type.Object({ opened: Type.Boolean() }, { description: 'Whether the account is open.' }) },
      },
      config: { scopes: ['moderation'], refusals },
    },
    async (request) => {
      const actor = await getRequestActor(request, 'moderation')
      const { opened } = await approveSignUp(request.services, actor, request.params.id, request.body)
      return { opened }
    },
  )

  app.post(
    '/sign_ups/:id/reject',
    {
      schema: {
        operationId: 'rejectSignUp',
        tags,
        summary: 'Reject a sign-up',
        description: 'Its name is free and its data goes. A confirmed address gets a mail.',
        params,
        body: Type.Object({ reason: actionBody.reason, message }),
        response: { 200: Type.Object({ rejected: Type.Boolean() }, { description: 'The sign-up is rejected.' }) },
      },
      config: { scopes: ['moderation'], refusals },
    },
    async (request) => {
      const { reason, message: answer } = request.body
      await rejectSignUp(request.services, await getRequestActor(request, 'moderation'), request.params.id, {
        reason,
        answer,
      })
      return { rejected: true }
    },
  )

  app.post(
    '/sign_ups/attended',
    {
      schema: {
        operationId: 'endUnattendedSignUps',
        tags,
        summary: 'Accept sign-ups without a decision again',
        description: 'Ends the approval that has begun because no moderator was active for `UNATTENDED_DAYS`.',
        body: Type.Object({ reason: actionBody.reason }),
        response: { 200: Type.Object({ changed: Changed }, { description: 'Sign-ups need no decision.' }) },
      },
      config: { scopes: ['administration'], refusals: actionRefusals },
    },
    async (request) =>
      endUnattendedPeriod(request.services, await getRequestActor(request, 'administration'), request.body),
  )

  app.post(
    '/sign_ups/decide',
    {
      schema: {
        operationId: 'decideSignUps',
        tags,
        summary: 'Decide several sign-ups',
        description: 'Sign-ups that no longer wait are left out.',
        body: Type.Object({
          ids: Type.Array(params.properties.id, { minItems: 1, maxItems: 100 }),
          decision: Type.Enum(['approve', 'reject']),
          reason: actionBody.reason,
          message,
        }),
        response: {
          200: Type.Object({ decided: Type.Array(Type.Integer()) }, { description: 'The ids that were decided.' }),
        },
      },
      config: { scopes: ['moderation'], refusals: actionRefusals },
    },
    async (request) => {
      const { ids, decision, reason, message: answer } = request.body
      const actor = await getRequestActor(request, 'moderation')
      return { decided: [...(await decideSignUps(request.services, actor, ids, { decision, reason, answer }))] }
    },
  )
}
