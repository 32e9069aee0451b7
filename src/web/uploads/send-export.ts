import type { FastifyReply, FastifyRequest } from 'fastify'
import type { Viewer } from '../../domain/accounts/viewers.js'
import { type Export, exportFile, recordDownload } from '../../domain/archives/exports.js'
import { User } from '../../persistence/models/user.js'
import { beginFile } from '../server/byte-range.js'
import { pageFault } from '../server/request-faults.js'

/** Answers with the file of a finished export. */
export async function sendExport(
  request: FastifyRequest,
  reply: FastifyReply,
  archiveExport: Export,
  { viewer, via }: { readonly viewer: Viewer; readonly via: 'api' | 'console' },
): Promise<FastifyReply> {
  const range = beginFile(request, reply, archiveExport.bytes ?? 0)
  const stream = await request.server.services.pictures.openExport(exportFile(archiveExport), range)
  if (stream === undefined) throw pageFault(410, 'error.export_deleted')
  await recordDownload(request.server.services, viewer, archiveExport, via)
  const day = archiveExport.createdAt.toISOString().slice(0, 10)
  const { username } = await User.query(request.server.services.db).findById(viewer.userId).throwIfNotFound()
  const ending = archiveExport.kind === 'photos' ? 'zip' : 'json.gz'
  const name = `${username}_${NAME_OF_KIND[archiveExport.kind]}_${day}.${ending}`
  return reply
    .type(archiveExport.kind === 'photos' ? 'application/zip' : 'application/gzip')
    .header('content-disposition', `attachment; filename="diaspora_${name}"`)
    .send(stream)
}

const NAME_OF_KIND: Readonly<Record<Export['kind'], string>> = { archive: 'data', copy: 'copy', photos: 'photos' }
