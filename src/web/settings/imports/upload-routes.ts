import { Readable } from 'node:stream'
import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { Refusal } from '../../../domain/refusals.js'
import { IMPORT_LIMITS } from '../../../federation/archives/limits.js'
import {
  beginUpload,
  countReceivedBytes,
  dropUpload,
  requestCheck,
  storeUploadedFile,
  storeUploadedPart,
} from '../../../federation/archives/uploads/receive-upload.js'
import type { UploadKind } from '../../../federation/archives/uploads/upload-space.js'
import { findOpenUpload } from '../../../persistence/archives/import-uploads.js'
import { queryText } from '../../schemas/query-text.js'
import { pageFault } from '../../server/request-faults.js'
import { extendTimeLimit } from '../../server/slow-requests.js'
import { importingUserOf, isRecentlyAuthenticated } from './importing-user.js'
import { IMPORT_PATHS } from './paths.js'

const KINDS = ['archive', 'photos'] as const satisfies readonly UploadKind[]

/** Reads archive and photos from the form, one after the other, and requests the check. An upload that was broken off is replaced. */
export async function readUploadedFiles(request: FastifyRequest, reply: FastifyReply): Promise<void> {
  const { services } = request.server
  const user = importingUserOf(request)
  if (!request.isMultipart()) throw uploadMissing()
  // The bytes after a refused file would be read as the next request.
  reply.header('connection', 'close')
  if ((await findOpenUpload(services.db, user.userId))?.state === 'uploading') await dropUpload(request.services, user)
  const upload = await beginUpload(request.services, user)
  try {
    const limits = {
      files: KINDS.length,
      fileSize: Math.max(services.config.importBytes, services.config.importPhotoBytes) + 1,
    }
    for await (const part of request.parts({ limits })) {
      if (part.type !== 'file') continue
      const kind = KINDS.find((known) => known === part.fieldname)
      if (kind === undefined || part.filename === '') part.file.resume()
      else await storeUploadedFile(request.services, upload, kind, extendWhileReading(request, part.file))
    }
    await requestCheck(request.services, user)
    reply.removeHeader('connection')
  } catch (error) {
    await dropUpload(request.services, user)
    throw error
  }
}

const EXTEND_EVERY_BYTES = 1024 * 1024

/** An upload may take hours, as long as bytes arrive. */
async function* extendWhileReading(request: FastifyRequest, source: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let bytes = 0
  extendTimeLimit(request.raw)
  for await (const chunk of source) {
    bytes += chunk.length
    if (bytes > EXTEND_EVERY_BYTES) {
      extendTimeLimit(request.raw)
      bytes = 0
    }
    yield chunk
  }
}

/** Files in parts with an offset, for the script of the page, which continues after an interruption. */
export const uploadPartRoutes: FastifyPluginAsync = async (app) => {
  const { services } = app
  const route = { schema: { hide: true }, config: { requires: 'session', checksForm: true } } as const

  // A part is read while it is written: many of them in memory, of one user or of all, would be gigabytes.
  app.addContentTypeParser('application/octet-stream', (_request, stream, done) => done(null, stream))

  app.get(IMPORT_PATHS.parts, route, async (request, reply) =>
    sendPart(reply, () => countReceivedBytes(request.services, importingUserOf(request), kindOf(request))),
  )

  app.post(IMPORT_PATHS.parts, route, async (request, reply) => {
    request.signedIn.session.checkForm(queryText(request, 'form'))
    const user = importingUserOf(request)
    const { body } = request
    return sendPart(reply, async () => {
      if (!(body instanceof Readable)) throw uploadMissing()
      const part = {
        kind: kindOf(request),
        offset: Number(queryText(request, 'offset') ?? '0'),
        bytes: declaredBytes(request),
      }
      if (part.kind === 'archive' && part.offset === 0) {
        if (!isRecentlyAuthenticated(request)) throw pageFault(403, 'error.forbidden')
        if ((await findOpenUpload(services.db, user.userId))?.state === 'uploading')
          await dropUpload(request.services, user)
        await beginUpload(request.services, user)
      }
      return storeUploadedPart(request.services, user, part, extendWhileReading(request, body))
    })
  })
}

const STATUS_OF_REFUSAL: Readonly<Record<string, number>> = {
  isolated_copy: 403,
  imports_off: 403,
  upload_running: 429,
  upload_missing: 404,
  too_many_checks: 429,
  too_large: 413,
  no_space: 507,
  uploads_full: 503,
  import_running: 429,
  upload_offset: 409,
}

/** Uploads of others are deleted after days. */
export const RETRY_AFTER_SECONDS = 60 * 60

/** The offset of the next part, or the reason of a refusal, as JSON. */
async function sendPart(reply: FastifyReply, use: () => Promise<number>) {
  try {
    return { offset: await use() }
  } catch (error) {
    const status = error instanceof Refusal ? STATUS_OF_REFUSAL[error.reason] : undefined
    if (!(error instanceof Refusal) || status === undefined) throw error
    if (status === 503) reply.header('retry-after', RETRY_AFTER_SECONDS)
    return reply.code(status).send({ reason: error.reason, ...error.details })
  }
}

/** A part without a declared length could be of any length. */
function declaredBytes({ headers }: FastifyRequest): number {
  const bytes = Number(headers['content-length'] ?? Number.NaN)
  if (bytes <= IMPORT_LIMITS.partBytes) return bytes
  throw new Refusal('too_large', `A part has at most ${IMPORT_LIMITS.partBytes} bytes.`)
}

function kindOf(request: FastifyRequest): UploadKind {
  return queryText(request, 'file') === 'photos' ? 'photos' : 'archive'
}

function uploadMissing(): Refusal {
  return new Refusal('upload_missing', 'Choose the file of an archive.')
}
