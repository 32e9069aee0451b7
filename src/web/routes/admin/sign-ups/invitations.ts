import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import {
  changeInvitation,
  inviteByStaff,
  listInvitations,
  recallInvitation,
} from '../../../../domain/moderation/sign-ups/invitations.js'
import { cursorPaging } from '../../../api/cursor-paging.js'
import { linkIdPages, readIdPaging } from '../../../api/id-paging.js'
import { presentInvitation } from '../../../presenters/invitations.js'
import { InvitationSchema } from '../../../schemas/invitations.js'
import {
  actionBody,
  actionRefusals,
  Changed,
  deletionFields,
  readDeletionReason,
} from '../../../schemas/moderation/moderation.js'
import { refTo } from '../../../schemas/references.js'
import { readTime } from '../../../schemas/times.js'
import { getRequestActor } from '../actor-of.js'

const tags = ['Invitations']
const params = Type.Object({ id: Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER }) })
const body = Type.Object({
  uses: Type.Optional(Type.Integer({ description: 'The number of sign-ups, 1 to 100. Default: 1.' })),
  until: Type.Optional(Type.String({ description: 'At most a year from now. Default: two weeks.' })),
  note: Type.Optional(Type.String({ description: 'Only moderators and admins read it.' })),
  reason: actionBody.reason,
})
const refusals = { ...actionRefusals, uses_invalid: 422, until_invalid: 422, note_invalid: 422 } as const

/** Invitations to sign up. */
export const invitationRoutes: FastifyPluginAsyncTypebox = async (app) => {
  app.get(
    '/invitations',
    {
      schema: {
        operationId: 'listInvitations',
        tags,
        summary: 'List invitations',
        description: 'Newest first, with the accounts that came by them.',
        querystring: Type.Object(cursorPaging),
        response: { 200: Type.Array(refTo(InvitationSchema), { description: 'The invitations.' }) },
      },
      config: { scopes: ['moderation'], refusals: { role_needed: 403 } },
    },
    async (request, reply) => {
      const page = await listInvitations(
        request.services,
        await getRequestActor(request, 'moderation'),
        readIdPaging(request.query),
      )
      linkIdPages(request, reply, page)
      return page.items.map(presentInvitation)
    },
  )

  app.post(
    '/invitations',
    {
      schema: {
        operationId: 'createInvitation',
        tags,
        summary: 'Create an invitation',
        description: 'Its link is shown only in this answer. It has no effect with `REGISTRATIONS=closed`.',
        body,
        response: {
          201: Type.Object(
            { ...InvitationSchema.properties, url: Type.String({ description: 'The page to sign up.' }) },
            { description: 'The invitation.' },
          ),
        },
      },
      config: { scopes: ['moderation'], refusals },
    },
    async (request, reply) => {
      const { uses, note, reason } = request.body
      const actor = await getRequestActor(request, 'moderation')
      const input = { uses, note, until: readUntil(request.body) }
      const { invitation, url } = await inviteByStaff(request.services, actor, input, { reason })
      reply.code(201)
      return { ...presentInvitation(invitation), url }
    },
  )

  app.patch(
    '/invitations/:id',
    {
      schema: {
        operationId: 'changeInvitation',
        tags,
        summary: 'Change an invitation',
        description: 'Fields that are left out stay as they are.',
        params,
        body,
        response: {
          200: Type.Object({ changed: Changed, ...InvitationSchema.properties }, { description: 'The invitation.' }),
        },
      },
      config: { scopes: ['moderation'], refusals: { ...refusals, invitation_not_found: 404 } },
    },
    async (request) => {
      const { uses, note, reason } = request.body
      const actor = await getRequestActor(request, 'moderation')
      const change = { id: request.params.id, uses, note, until: readUntil(request.body) }
      const { changed, invitation } = await changeInvitation(request.services, actor, change, { reason })
      return { changed, ...presentInvitation(invitation) }
    },
  )

  app.delete(
    '/invitations/:id',
    {
      schema: {
        operationId: 'recallInvitation',
        tags,
        summary: 'Recall an invitation',
        description: 'Its link works no more. Accounts that came by it stay.',
        params,
        ...deletionFields,
        response: {
          200: Type.Object(
            { changed: Changed, ...InvitationSchema.properties },
            { description: 'The recalled invitation.' },
          ),
        },
      },
      config: { scopes: ['moderation'], refusals: { ...actionRefusals, invitation_not_found: 404 } },
    },
    async (request) => {
      const actor = await getRequestActor(request, 'moderation')
      const { changed, invitation } = await recallInvitation(
        request.services,
        actor,
        request.params.id,
        readDeletionReason(request),
      )
      return { changed, ...presentInvitation(invitation) }
    },
  )
}

function readUntil({ until }: { readonly until?: string }): Date | undefined {
  return until === undefined ? undefined : readTime('until', until)
}
