import { constants, type FileHandle, open } from 'node:fs/promises'
import { join } from 'node:path'
import type { FastifyPluginAsync } from 'fastify'
import { UPLOADS_PATH } from '../../../domain/photos/photos.js'
import { imagesFolder } from '../../../persistence/photos/picture-files.js'
import { RequestFault } from '../../server/request-faults.js'

const A_YEAR = 365 * 86_400

/** A name that is made here, with or without the prefix of a size: no folder, nothing hidden, one dot. */
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

  app.get<{ Params: { name: string } }>(
    `${UPLOADS_PATH}:name`,
    {
      config: {
        public: true,
        quiet: true,
        headers: {
          'cross-origin-resource-policy': 'cross-origin',
          // Whatever somebody uploaded: opened as a page of its own, it runs and loads nothing.
          'content-security-policy': "default-src 'none';sandbox",
        },
      },
      schema: { hide: true },
    },
    async (request, reply) => {
      const { name } = request.params
      const [, ending = ''] = NAME.exec(name) ?? []
      const mediaType = MEDIA_TYPES[ending]
      const file = mediaType === undefined ? undefined : await openFile(join(folder, name))
      if (mediaType === undefined || file === undefined) throw new RequestFault(404, 'There is no such picture.')
      return (
        reply
          .type(mediaType)
          .header('content-length', file.bytes)
          // A name never gets another content.
          .header('cache-control', `public, max-age=${A_YEAR}, immutable`)
          .send(file.handle.createReadStream())
      )
    },
  )
}

/** Only plain files: a link could lead anywhere. */
async function openFile(path: string): Promise<{ readonly handle: FileHandle; readonly bytes: number } | undefined> {
  let handle: FileHandle
  try {
    handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW)
  } catch {
    return undefined
  }
  const facts = await handle.stat()
  if (facts.isFile()) return { handle, bytes: facts.size }
  await handle.close()
  return undefined
}
