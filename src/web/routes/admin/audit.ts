import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { auditEntryFields, exportAudit, listAudit } from '../../../domain/moderation/audit.js'
import { cursorPaging } from '../../api/cursor-paging.js'
import { linkIdPages, readIdPaging } from '../../api/id-paging.js'
import { AuditEntrySchema } from '../../schemas/moderation/moderation.js'
import { refTo } from '../../schemas/references.js'
import { readTime } from '../../schemas/times.js'
import { getRequestActor } from './actor-of.js'

const tags = ['Audit']

const list = Type.Object({
  actor: Type.Optional(
    Type.String({ description: 'The user name, address or guid of a person, `command` or `system`.' }),
  ),
  action: Type.Optional(
    Type.Unsafe<string | string[]>({
      anyOf: [{ type: 'string' }, { type: 'array', items: { type: 'string' } }],
      description: 'The kind of action; may be repeated.',
    }),
  ),
  target: Type.Optional(Type.String({ description: 'The guid of the target.' })),
  domain: Type.Optional(Type.String({ description: 'Actions on the people and the pod of this domain.' })),
  since: Type.Optional(Type.String({ description: 'From this time on.' })),
  until: Type.Optional(Type.String({ description: 'Before this time.' })),
  ...cursorPaging,
})

/** The log of all actions. */
export const auditRoutes: FastifyPluginAsyncTypebox = async (app) => {
  app.get(
    '/audit',
    {
      schema: {
        operationId: 'listAuditEntries',
        tags,
        summary: 'List the audit log',
        description: 'All actions of moderators, admins and commands, newest first.',
        querystring: list,
        response: { 200: Type.Array(refTo(AuditEntrySchema), { description: 'The entries.' }) },
      },
      config: { scopes: ['moderation'], refusals: { role_needed: 403 } },
    },
    async (request, reply) => {
      const { actor, action, target, domain, since, until, ...paging } = request.query
      const filter = {
        actor,
        actions: action === undefined ? undefined : [action].flat(),
        target,
        domain: domain?.toLowerCase(),
        since: since === undefined ? undefined : readTime('since', since),
        until: until === undefined ? undefined : readTime('until', until),
      }
      const page = await listAudit(
        request.services,
        await getRequestActor(request, 'moderation'),
        filter,
        readIdPaging(paging),
      )
      linkIdPages(request, reply, page)
      return page.items.map(auditEntryFields)
    },
  )

  app.get(
    '/audit/export',
    {
      schema: {
        operationId: 'exportAuditLog',
        tags,
        summary: 'Export the audit log',
        description: 'The whole log, oldest entry first, as a stream. The export is an entry of the log itself.',
        querystring: Type.Object({ format: Type.Optional(Type.Enum(['ndjson', 'csv'], { default: 'ndjson' })) }),
        produces: ['application/x-ndjson', 'text/csv'],
        response: { 200: Type.String({ description: 'One entry a line.' }) },
      },
      config: { scopes: ['administration'], writes: true, refusals: { role_needed: 403 } },
    },
    async (request, reply) => {
      const { format = 'ndjson' } = request.query
      const entries = await exportAudit(request.services, await getRequestActor(request, 'administration'), format)
      const type = format === 'csv' ? 'text/csv; charset=utf-8' : 'application/x-ndjson'
      reply.type(type).header('content-disposition', `attachment; filename="audit.${format}"`)
      return reply.send(entries as never) // a stream, which the response schema cannot describe
    },
  )
}
