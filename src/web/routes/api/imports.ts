import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { getArchiveImport, listImports } from '../../../domain/archives/imports.js'
import { presentArchiveImport, presentUpload } from '../../presenters/imports.js'
import { Timestamp } from '../../schemas/formats.js'
import { nullable, refTo } from '../../schemas/references.js'

const SectionCounts = Type.Object({
  found: Type.Integer(),
  imported: Type.Integer(),
  skipped: Type.Integer({ description: 'They were there already.' }),
  refused: Type.Integer(),
  by_reason: Type.Record(Type.String(), Type.Integer(), { description: 'Refused items by reason.' }),
})

const ImportSchema = Type.Object(
  {
    id: Type.String(),
    state: Type.Enum(['uploaded', 'checking', 'checked', 'running', 'paused', 'done', 'failed', 'cancelled']),
    old_address: nullable(Type.String({ description: 'The network ID of the archive; null until its check.' })),
    identity: nullable(
      Type.String({ description: '`proven`, `unproven`, `closed`, `moved_here`, `local` or `same`.' }),
    ),
    moves: Type.Boolean({ description: 'The old account moves to this one.' }),
    phase: Type.String({ description: 'The part that is imported, or was the last; `check` before the start.' }),
    sections: Type.Record(Type.String(), SectionCounts, { description: 'Items by section of the archive.' }),
    error: nullable(Type.String()),
    created_at: Timestamp,
    finished_at: nullable(Timestamp),
  },
  { $id: 'Import', description: 'An import of an archive into your account.' },
)

const tags = ['Imports']
const scopes = ['profile:read_private'] as const

/** State and counts of imports. They begin on a page or by a command: a token must not move an account. */
export const importRoutes: FastifyPluginAsyncTypebox = async (app) => {
  app.addSchema(ImportSchema)

  app.get(
    '/user/imports',
    {
      schema: {
        operationId: 'listImports',
        tags,
        summary: 'List your imports',
        description: 'An extension of this pod. The newest first.',
        response: { 200: Type.Array(refTo(ImportSchema), { description: 'Your imports, the newest first.' }) },
      },
      config: { scopes: [...scopes] },
    },
    async ({ services, viewer }) => {
      const { uploads, imports } = await listImports(services, viewer)
      return [...uploads.map(presentUpload), ...imports.map(presentArchiveImport)]
    },
  )

  app.get(
    '/user/imports/:import_id',
    {
      schema: {
        operationId: 'getImport',
        tags,
        summary: 'Read one of your imports',
        description: 'An extension of this pod.',
        params: Type.Object({ import_id: Type.String() }),
        response: { 200: refTo(ImportSchema, 'The import.') },
      },
      config: { scopes: [...scopes], refusals: { import_not_found: 404 } },
    },
    async ({ services, viewer, params: { import_id: id } }) => {
      const upload = (await listImports(services, viewer)).uploads.find(({ uid }) => uid === id)
      return upload === undefined
        ? presentArchiveImport(await getArchiveImport(services, viewer, id))
        : presentUpload(upload)
    },
  )
}
