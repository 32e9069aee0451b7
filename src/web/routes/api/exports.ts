import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import {
  deleteExport,
  EXPORT_KINDS,
  type Export,
  listExports,
  readExport,
  readFinishedExport,
  requestExport,
  requireCopy,
} from '../../../domain/archives/exports.js'
import { Refusal } from '../../../domain/refusals.js'
import { tooMany } from '../../limits/rate-limit.js'
import { presentExport } from '../../presenters/exports.js'
import { Timestamp } from '../../schemas/formats.js'
import { nullable, refTo } from '../../schemas/references.js'
import { sendExport } from '../../uploads/send-export.js'

const ExportSchema = Type.Object(
  {
    id: Type.String(),
    kind: Type.Enum([...EXPORT_KINDS]),
    state: Type.Enum(['waiting', 'running', 'ready', 'failed', 'expired']),
    section: nullable(Type.String({ description: 'The part that is being written.' })),
    done: Type.Integer({ description: 'Items of that part that are written.' }),
    bytes: nullable(Type.Integer()),
    sha256: nullable(Type.String({ description: 'Of the file.' })),
    left_out: Type.Integer({ description: 'Comments, likes and votes of others whose signature is missing.' }),
    error: nullable(Type.String({ description: '`no_space`, `too_large`, `interrupted` or `internal_error`.' })),
    created_at: Timestamp,
    finished_at: nullable(Timestamp),
    expires_at: nullable(Timestamp),
  },
  { $id: 'Export', description: 'An export of your account, made by a worker.' },
)

const File = Type.String({ format: 'binary' })

const tags = ['Exports']
const params = Type.Object({ export_id: Type.String() })
/** An export contains everything that these scopes let a client read. */
const scopes = ['profile:read_private', 'contacts:read', 'private:read', 'conversations', 'tags:read'] as const
const missing = { export_not_found: 404 } as const

/** Exports of the own account without the private key, which no token can reach. */
export const exportRoutes: FastifyPluginAsyncTypebox = async (app) => {
  app.addSchema(ExportSchema)

  app.post(
    '/user/exports',
    {
      schema: {
        operationId: 'createExport',
        tags,
        summary: 'Export your account',
        description:
          'An extension of this pod. Requests an archive of your account in the format of diaspora*, without the private key (`copy`), or a zip of your photos (`photos`). A worker makes it; read it until `state` is `ready`. At most three of a kind are made a day, and the file is kept for 14 days.',
        body: Type.Object({
          kind: Type.Enum([...EXPORT_KINDS], { description: '`copy` or `photos`; `archive` is on the page only.' }),
        }),
        response: { 202: refTo(ExportSchema, 'The export waits for a worker.') },
      },
      config: {
        scopes: [...scopes],
        refusals: { page_only: 403, isolated_copy: 403, export_running: 409, invalid: 422, malformed: 422 },
      },
    },
    async ({ services, viewer, body }, reply) => {
      requireCopy(body)
      const archiveExport = await answerAsRateLimit(requestExport(services, viewer, body.kind))
      return reply.code(202).send(presentExport(archiveExport))
    },
  )

  app.get(
    '/user/exports',
    {
      schema: {
        operationId: 'listExports',
        tags,
        summary: 'List your exports',
        description: 'An extension of this pod. The newest first.',
        response: { 200: Type.Array(refTo(ExportSchema), { description: 'Your exports, the newest first.' }) },
      },
      config: { scopes: [...scopes] },
    },
    async ({ services, viewer }) => (await listExports(services, viewer)).map(presentExport),
  )

  app.get(
    '/user/exports/:export_id',
    {
      schema: {
        operationId: 'getExport',
        tags,
        summary: 'Read one of your exports',
        description: 'An extension of this pod.',
        params,
        response: { 200: refTo(ExportSchema, 'The export.') },
      },
      config: { scopes: [...scopes], refusals: missing },
    },
    async ({ services, viewer, params: { export_id: id } }) => presentExport(await readExport(services, viewer, id)),
  )

  app.get(
    '/user/exports/:export_id/file',
    {
      schema: {
        operationId: 'getExportFile',
        tags,
        summary: 'Download one of your exports',
        description: 'An extension of this pod. Parts of the file can be requested with `Range`.',
        params,
        response: {
          200: {
            description: 'The file.',
            content: { 'application/gzip': { schema: File }, 'application/zip': { schema: File } },
          },
        },
      },
      config: {
        scopes: [...scopes],
        refusals: { ...missing, page_only: 403, export_not_ready: 409, export_expired: 410 },
      },
    },
    async (request, reply) => {
      const {
        viewer,
        params: { export_id: id },
      } = request
      const accountExport = await readFinishedExport(request.services, viewer, id)
      requireCopy(accountExport)
      return sendExport(request, reply, accountExport, { viewer, via: 'api' })
    },
  )

  app.delete(
    '/user/exports/:export_id',
    {
      schema: {
        operationId: 'deleteExport',
        tags,
        summary: 'Delete one of your exports',
        description: 'An extension of this pod. Its file is deleted; a running export ends.',
        params,
        response: { 204: Type.Null({ description: 'The export is deleted.' }) },
      },
      config: { scopes: [...scopes], refusals: { ...missing, page_only: 403 } },
    },
    async ({ services, viewer, params: { export_id: id } }, reply) => {
      await deleteExport(services, viewer, id, 'api')
      return reply.code(204).send(null)
    },
  )
}

/** A limit of the use case is answered like every other limit. */
async function answerAsRateLimit(request: Promise<Export>): Promise<Export> {
  try {
    return await request
  } catch (error) {
    const isTooMany = error instanceof Refusal && error.reason === 'too_many_exports'
    throw isTooMany ? tooMany(Number(error.details?.['retryAfter'])) : error
  }
}
