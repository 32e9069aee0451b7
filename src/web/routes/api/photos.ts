import multipart from '@fastify/multipart'
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyRequest } from 'fastify'
import { type Static, Type } from 'typebox'
import { changeAltText } from '../../../domain/photos/change-photo.js'
import { PHOTO_LIMITS } from '../../../domain/photos/limits.js'
import { type NewPhoto, uploadPhoto } from '../../../domain/photos/uploads.js'
import { getCreatedPhoto, getPhoto, listOwnPhotos } from '../../../domain/photos/visible-photos.js'
import { deletePhoto } from '../../../domain/posts/deletions.js'
import { networkOfAddress } from '../../../networks/network-source.js'
import type { ListedPhoto } from '../../../persistence/photos/list-photos.js'
import { objectFinder } from '../../api/missing-objects-first.js'
import { linkTimePages, readTimePage, timePaging } from '../../api/paging.js'
import { readList } from '../../api/read-list.js'
import { openConcurrencyLimit } from '../../limits/concurrency-limit.js'
import { presentPhoto } from '../../presenters/photos.js'
import { Photo } from '../../schemas/posts.js'
import { nullable, refTo } from '../../schemas/references.js'
import { HTTP_LIMITS } from '../../server/limits.js'
import { RequestFault } from '../../server/request-faults.js'
import { InvalidRequest, listInvalidFields } from '../../server/schemas/validation.js'
import { extendTimeLimit } from '../../server/slow-requests.js'
import { type AuthenticateUpload, readUploadForm } from '../../uploads/upload-form.js'
import { AltText, readUploadOptions, uploadOptions } from '../../uploads/upload-options.js'

const params = Type.Object({ photo_guid: Type.String() })
const missing = { photo_not_found: 404 }

interface PhotoRoutesOptions {
  /** Milliseconds to wait for a worker; shorter in tests. */
  readonly processedWithin?: number
  /** Milliseconds to wait in the queue; shorter in tests. */
  readonly queuedWithin?: number
}

/** The viewer's own photos, and single photos of other people. */
export const photoRoutes: FastifyPluginAsyncTypebox<PhotoRoutesOptions> = async (
  app,
  { processedWithin, queuedWithin = HTTP_LIMITS.turnTimeoutMs },
) => {
  await app.register(multipart, { throwFileSizeLimit: false })
  const unauthenticatedUploads = openConcurrencyLimit<string>({
    limit: 'uploads',
    total: PHOTO_LIMITS.uploadsBeforeToken,
    perKey: PHOTO_LIMITS.uploadsBeforeTokenOfAddress,
  })
  const uploads = openConcurrencyLimit<number>({
    limit: 'uploads',
    total: PHOTO_LIMITS.maxConcurrentUploads,
    perKey: PHOTO_LIMITS.uploadsOfPerson,
    queue: { total: PHOTO_LIMITS.uploadsWaiting, perKey: PHOTO_LIMITS.uploadsWaitingOfPerson, withinMs: queuedWithin },
  })

  const findPhoto = objectFinder<Static<typeof params>>((request) =>
    getCreatedPhoto(request.services, request.viewer, request.params.photo_guid),
  )

  app.get(
    '/photos',
    {
      schema: {
        operationId: 'listOwnPhotos',
        tags: ['Photos'],
        summary: 'List your photos',
        description: 'Newest first, including pending photos. Private photos need the scope `private:read`.',
        querystring: Type.Object(timePaging),
        response: { 200: Type.Array(refTo(Photo), { description: 'Your photos, newest first.' }) },
      },
      config: { scopes: ['public:read'] },
    },
    async (request, reply) => {
      const page = readTimePage(request)
      const photos = await readList(request, (services) => listOwnPhotos(services, request.viewer, page))
      linkTimePages(reply, page, photos)
      return photos.items.flatMap((photo) => presentPhoto(photo, app.services.config) ?? [])
    },
  )

  app.get(
    '/photos/:photo_guid',
    {
      schema: {
        operationId: 'getPhoto',
        tags: ['Photos'],
        summary: 'Read a photo',
        description:
          'Your own photos, public photos, and private photos that were shared with you (scope `private:read`).',
        params,
        response: { 200: refTo(Photo, 'The photo.') },
      },
      config: { scopes: ['public:read'], refusals: missing },
    },
    async (request) => present(await getPhoto(request.services, request.viewer, request.params.photo_guid)),
  )

  app.post(
    '/photos',
    {
      schema: {
        operationId: 'uploadPhoto',
        tags: ['Photos'],
        summary: 'Upload a photo',
        description:
          'A JPEG, PNG, GIF or WebP file; the declared name and type do not matter. Metadata such as the location is removed. A photo that is neither `pending` nor a profile picture is private and needs the scope `private:modify`. The token may be the form field `access_token`. If no worker processes the photo in time, the answer is 503 and nothing is stored.',
        consumes: ['multipart/form-data'],
        querystring: Type.Object(uploadOptions),
        body: Type.Object({
          image: Type.Unsafe<unknown>({ type: 'string', format: 'binary', description: 'The file.' }),
          ...uploadOptions,
        }),
        response: { 200: refTo(Photo, 'The new photo.') },
      },
      // The handler reads the form as a stream.
      validatorCompiler: (part) => (part.httpPart === 'body' ? () => true : compile(part)),
      config: {
        scopes: ['public:modify'],
        tokenInUpload: true,
        refusals: {
          image_missing: 422,
          image_too_large: 422,
          image_invalid: 422,
          alt_text_invalid: 422,
          insufficient_scope: { status: 422, field: 'pending' },
          aspects_not_found: 422,
          photo_quota: 422,
        },
      },
    },
    async (request) => {
      const { raw, signal } = request
      extendTimeLimit(raw)
      if (request.authenticatedViewer === undefined) return present(await uploadWithTokenInForm(request))
      const { viewer } = request
      async function upload(): Promise<string> {
        extendTimeLimit(raw) // the wait in the queue does not count: nothing was read in the meantime
        return uploadPhoto(request.services, viewer, await readUpload(request), processedWithin)
      }
      const guid = await uploads.run(viewer.userId, upload, signal)
      return present(await getCreatedPhoto(request.services, viewer, guid))
    },
  )

  app.patch(
    '/photos/:photo_guid',
    {
      schema: {
        operationId: 'changePhoto',
        tags: ['Photos'],
        summary: 'Describe a photo of yours',
        description:
          'Sets or removes the description of a photo, for people who cannot see it. Pods that have the photo receive the change. Private photos that are not pending need the scope `private:modify`.',
        params,
        body: Type.Object({
          alt_text: nullable(AltText),
        }),
        response: { 200: refTo(Photo) },
      },
      config: {
        findObject: findPhoto,
        scopes: ['public:modify'],
        refusals: { ...missing, invalid: 422, alt_text_invalid: 422 },
      },
    },
    async (request) => {
      const { photo_guid: guid } = request.params
      await changeAltText(request.services, request.viewer, { guid, altText: request.body.alt_text })
      return present(await getCreatedPhoto(request.services, request.viewer, guid))
    },
  )

  app.delete(
    '/photos/:photo_guid',
    {
      schema: {
        operationId: 'deletePhoto',
        tags: ['Photos'],
        summary: 'Delete one of your photos',
        description:
          'A profile that uses the photo loses its picture. A post that would be left without text and photos is deleted too. A private photo needs the scope `private:modify`.',
        params,
        response: { 204: Type.Null({ description: 'The photo is deleted.' }) },
      },
      config: { scopes: ['public:modify'], refusals: missing },
    },
    async (request, reply) => {
      await deletePhoto(request.services, request.viewer, request.params.photo_guid)
      return reply.code(204).send(null)
    },
  )

  const compile: NonNullable<typeof app.validatorCompiler> = (part) => {
    if (app.validatorCompiler === undefined) throw new Error('The API has no validator compiler.')
    return app.validatorCompiler(part)
  }

  /** Reads the form before its sender is authenticated. The number of concurrent forms is limited, in total and per network address. */
  async function uploadWithTokenInForm(request: FastifyRequest): Promise<ListedPhoto> {
    const read = () =>
      readUpload(request, async (token) => {
        await app.authenticateUpload(request, token)
        app.countWrite(request)
      })
    const photo = await unauthenticatedUploads.run(networkOfAddress(request.ip), read)
    const { viewer } = request
    let isStarted = false
    const upload = () => {
      isStarted = true
      return uploadPhoto(request.services, viewer, photo, processedWithin)
    }
    try {
      const guid = await uploads.run(viewer.userId, upload, request.signal)
      return await getCreatedPhoto(request.services, viewer, guid)
    } finally {
      if (!isStarted) await request.services.pictures.deleteUploads([photo.file])
    }
  }

  async function readUpload(request: FastifyRequest, authenticate?: AuthenticateUpload): Promise<NewPhoto> {
    const { file, fields } = await readUploadForm(request, authenticate)
    try {
      const parameters = Object.entries({ ...Object(request.query), ...fields })
      const options = Object.fromEntries(parameters.map(([name, value]) => [name.replace(/\[\]$/, ''), value]))
      if (!request.validateInput(options, 'querystring')) {
        const errors = request.getValidationFunction('querystring')?.errors
        throw new InvalidRequest('body', 'An option of the upload is invalid.', listInvalidFields(errors ?? []))
      }
      return { file, ...readUploadOptions(options) }
    } catch (error) {
      await request.services.pictures.deleteUploads([file])
      throw error
    }
  }

  function present(photo: ListedPhoto) {
    const presentedPhoto = presentPhoto(photo, app.services.config)
    if (presentedPhoto === undefined)
      throw new RequestFault(404, 'This photo does not exist, or you may not see it.', { reason: 'photo_not_found' })
    return presentedPhoto
  }
}
