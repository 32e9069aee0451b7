import type { FastifyPluginAsync, FastifyReply, FastifyRequest, RouteOptions } from 'fastify'
import { importedPhotoFile } from '../../../domain/photos/imported-photos.js'
import { PHOTO_LIMITS } from '../../../domain/photos/limits.js'
import { originalOf, UPLOADS_PATH } from '../../../domain/photos/photos.js'
import { makeMissingSizesJob } from '../../../jobs/definitions.js'
import { findPictureState, type MovedPicture } from '../../../persistence/photos/picture-state.js'
import { isGuid } from '../../../protocol/values.js'
import { beginFile } from '../../server/byte-range.js'
import { isNotModified } from '../../server/entity-tags.js'
import { pageFault, type RequestFault } from '../../server/request-faults.js'
import { movedPictureUrl } from '../../uploads/moved-picture-url.js'

const A_YEAR = 365 * 86_400

/** Browsers keep a redirect to the store for ten minutes; its address is valid for fifteen. */
const LINK_SECONDS = 600
/** A redirect to the address of UPLOADS_BASE_URL, which does not expire, or to the new pod of an account that has moved. */
const A_DAY = 86_400

/** A file name of this pod, or of one that was taken over, with or without a size prefix: no folder, no leading dot. */
const NAME = /^[A-Za-z0-9_-][A-Za-z0-9._-]{0,249}\.(jpe?g|png|gif|webp|tiff?)$/i

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  png: 'image/png',
  gif: 'image/gif',
  webp: 'image/webp',
  tif: 'image/tiff',
  tiff: 'image/tiff',
}

/** Pictures under the addresses that other pods and clients build from path, size and name. */
export const uploadRoutes: FastifyPluginAsync = async (app) => {
  // The handler answers HEAD itself, so that it does not read the file.
  const route = {
    method: ['GET', 'HEAD'],
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
  } satisfies Partial<RouteOptions>

  app.route<{ Params: { name: string } }>({
    ...route,
    url: `${UPLOADS_PATH}:name`,
    handler: async (request, reply) => sendPicture(request, reply, request.params.name),
  })

  app.route<{ Params: { person_guid: string; name: string } }>({
    ...route,
    url: `${UPLOADS_PATH}:person_guid/:name`,
    handler: async (request, reply) => {
      const { person_guid: guid, name } = request.params
      if (!isGuid(guid)) throw noPicture()
      return sendPicture(request, reply, importedPhotoFile(guid, name))
    },
  })
}

async function sendPicture(request: FastifyRequest, reply: FastifyReply, name: string): Promise<FastifyReply> {
  const { pictures, config, db } = request.server.services
  const [, ending = ''] = NAME.exec(name) ?? []
  const mediaType = MEDIA_TYPES[ending.toLowerCase()]
  if (mediaType === undefined) throw noPicture()
  const names = [name, originalOf(name) ?? name]
  const { isHidden, moved } = await findPictureState(db, names, PHOTO_LIMITS.movedFileDays)
  if (isHidden) throw noPicture()
  if (moved?.isOver === true) return leadToNewPlace(reply, name, moved)
  const method = request.method === 'HEAD' ? 'HEAD' : 'GET'
  const link = config.s3Delivery === 'redirect' ? await pictures.linkTo?.(name, method) : undefined
  if (link !== undefined && config.uploadsBaseUrl !== undefined)
    return reply.header('cache-control', `public, max-age=${A_DAY}`).redirect(`${config.uploadsBaseUrl}${name}`, 302)
  // Shorter than the address is valid.
  if (link !== undefined) return reply.header('cache-control', `private, max-age=${LINK_SECONDS}`).redirect(link, 302)
  const pictureFile = await pictures.find(name)
  if (pictureFile === undefined && moved !== undefined) return leadToNewPlace(reply, name, moved)
  if (pictureFile === undefined) return sendOriginal(request, reply, { name, mediaType })
  // The content of a name never changes.
  reply.header('cache-control', `public, max-age=${A_YEAR}, immutable`).header('etag', pictureFile.etag)
  // Browsers do not show it.
  if (mediaType === 'image/tiff') reply.header('content-disposition', 'attachment')
  if (isNotModified(request, pictureFile.etag)) return reply.code(304).send()
  const range = beginFile(request, reply.type(mediaType), pictureFile.bytes)
  if (request.method === 'HEAD') return reply.send()
  const stream = await pictures.open(name, range)
  if (stream === undefined) throw noPicture()
  return reply.send(stream)
}

/** The picture of an account that has moved is on its new pod. */
function leadToNewPlace(reply: FastifyReply, name: string, moved: MovedPicture): FastifyReply {
  const url = movedPictureUrl(reply.server.services.config, name, moved)
  if (url === undefined) throw noPicture()
  return reply.header('cache-control', `public, max-age=${A_DAY}`).redirect(url, 301)
}

/**
 * A pod that was taken over may lack sizes of its oldest photos: their originals are sent until the sizes are made. Nothing caches this
 * answer. Other pictures may be where the old pod has moved them.
 */
async function sendOriginal(
  { server: { services }, log, method }: FastifyRequest,
  reply: FastifyReply,
  { name, mediaType }: { readonly name: string; readonly mediaType: string },
): Promise<FastifyReply> {
  const original = originalOf(name)
  const pictureFile = original === undefined ? undefined : await services.pictures.find(original)
  if (original === undefined || pictureFile === undefined) {
    const { imageRedirectUrl } = services.config
    if (imageRedirectUrl === undefined) throw noPicture()
    return reply.redirect(`${imageRedirectUrl}${UPLOADS_PATH}${encodeURIComponent(name)}`, 301)
  }
  if (method !== 'HEAD') {
    await services.jobs
      .add(makeMissingSizesJob, { name: original }, { deduplicationKey: `sizes-${original}` })
      .catch((err: unknown) => log.warn({ err, picture: original }, 'missing sizes not enqueued'))
  }
  reply.header('cache-control', 'no-store').header('content-length', pictureFile.bytes).type(mediaType)
  if (mediaType === 'image/tiff') reply.header('content-disposition', 'attachment')
  const stream = method === 'HEAD' ? undefined : await services.pictures.open(original)
  return reply.send(stream)
}

function noPicture(): RequestFault {
  return pageFault(404, 'error.no_picture')
}
