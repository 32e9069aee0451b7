import { constants, type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import type { FastifyPluginAsync } from 'fastify'
import { UPLOADS_PATH } from '../../../domain/photos/photos.js'
import { imagesFolder } from '../../../persistence/photos/picture-files.js'
import { isNotModified } from '../../server/entity-tags.js'
import { RequestFault } from '../../server/request-faults.js'

const A_YEAR = 365 * 86_400

/** A file name that this pod generates, with or without a size prefix: no folder, no leading dot, one dot. */
const NAME = /^[A-Za-z0-9][A-Za-z0-9_-]{0,199}\.(jpe?g|png|gif|webp)$/

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  png: 'image/png',
  gif: 'image/gif',
  webp: 'image/webp',
}

/** Pictures under the addresses that other pods and clients build from path, size and name. */
export const uploadRoutes: FastifyPluginAsync = async (app) => {
  const folder = imagesFolder(app.pod.config.uploadsDir)

  // The handler answers HEAD itself, so that it does not read the file.
  app.route<{ Params: { name: string } }>({
    method: ['GET', 'HEAD'],
    url: `${UPLOADS_PATH}:name`,
    exposeHeadRoute: false,
    config: {
      public: true,
      quiet: true,
      headers: {
        'cross-origin-resource-policy': 'cross-origin',
        'access-control-allow-origin': '*',
        // An upload that is opened as a page runs and loads nothing.
        'content-security-policy': "default-src 'none';sandbox",
      },
    },
    schema: { hide: true },
    handler: async (request, reply) => {
      const { name } = request.params
      const [, ending = ''] = NAME.exec(name) ?? []
      const mediaType = MEDIA_TYPES[ending]
      const file = mediaType === undefined ? undefined : await openFile(join(folder, name))
      if (mediaType === undefined || file === undefined) throw new RequestFault(404, 'There is no such picture.')
      // The content of a name never changes.
      reply.header('cache-control', `public, max-age=${A_YEAR}, immutable`).header('etag', file.etag)
      const isKnown = isNotModified(request, file.etag)
      if (!isKnown) reply.type(mediaType).header('content-length', file.bytes)
      if (!isKnown && request.method === 'GET') return reply.send(file.handle.createReadStream())
      await file.handle.close()
      return reply.code(isKnown ? 304 : 200).send()
    },
  })
}

interface OpenFile {
  readonly handle: FileHandle
  readonly bytes: number
  readonly etag: string
}

/** Opens only regular files: a symbolic link could lead outside of the folder. */
async function openFile(path: string): Promise<OpenFile | undefined> {
  let handle: FileHandle
  try {
    handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW)
  } catch {
    return undefined
  }
  const facts = await handle.stat()
  if (facts.isFile()) {
    const etag = `"${facts.size.toString(16)}-${Math.floor(facts.mtimeMs).toString(16)}"`
    return { handle, bytes: facts.size, etag }
  }
  await handle.close()
  return undefined
}
