import type { IncomingMessage } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { PHOTO_LIMITS } from '../../domain/photos/limits.js'
import type { PictureStorage } from '../../persistence/photos/picture-storage.js'
import { StorageUnavailable } from '../../persistence/s3/storage-unavailable.js'
import { RequestFault } from '../server/request-faults.js'
import { uploadOptions } from './upload-options.js'

export interface UploadForm {
  /** The name of the file in the folder of uploads. */
  readonly file: string
  /** The other fields. A repeated field is a list. */
  readonly fields: Readonly<Record<string, unknown>>
}

const FIELD = 'image'
const TOKEN = 'access_token'
/** Other fields are ignored and not stored. */
const OPTIONS: ReadonlySet<string> = new Set(Object.keys(uploadOptions))

/**
 * Streams the file of a form into the folder of uploads, regardless of its declared name and type. A refused form is also read to
 * its end, because many clients read no response before. A client that sends far more than the limit is disconnected.
 */
export async function readUploadForm(request: FastifyRequest, authenticate?: AuthenticateUpload): Promise<UploadForm> {
  if (!request.isMultipart()) throw imageMissing(`The picture has to come as field "${FIELD}" of a form.`)
  const { pictures, config } = request.server.services
  const { photoBytes } = config
  const files: string[] = []
  try {
    const cutOff = cutAfter(request.raw, photoBytes * PHOTO_LIMITS.oversizeReadFactor)
    const form = readParts(request, { pictures, photoBytes, files, signal: cutOff.signal, authenticate })
    const { fields, fault, refusal } = await Promise.race([form, cutOff.happens])
    if (refusal !== undefined) throw refusal
    if (fault !== undefined) throw fault
    const [file] = files
    if (file === undefined) throw imageMissing(`The form has no file in a field "${FIELD}".`)
    return { file, fields }
  } catch (error) {
    await pictures.deleteUploads(files)
    throw faultOf(error)
  }
}

interface ReadOptions {
  readonly pictures: PictureStorage
  readonly photoBytes: number
  /** Names of the stored files, filled during the read, so that the caller can delete them after an error. */
  readonly files: string[]
  readonly signal: AbortSignal
  readonly authenticate: AuthenticateUpload | undefined
}

/** Authenticates the token of the form. Called once, as soon as the token is read; throws if it is refused. */
export type AuthenticateUpload = (token: string | undefined) => Promise<void>

/** Reads all parts of a form. The result holds the first errors instead of throwing them, because the form is read to its end. */
async function readParts(
  request: FastifyRequest,
  { pictures, photoBytes, files, signal, authenticate }: ReadOptions,
): Promise<{
  readonly fields: Record<string, unknown>
  readonly fault: RequestFault | undefined
  /** The error that `authenticate` has thrown. */
  readonly refusal: unknown
}> {
  const fields = new Map<string, unknown>()
  let fault: RequestFault | undefined
  let refusal: unknown
  let isAuthenticated = authenticate === undefined
  const isPartAFile = (name?: string) => !isOption(name) && !(name === TOKEN && authenticate !== undefined)
  const authenticateWith = async (token: string | undefined) => {
    isAuthenticated = true
    await authenticate?.(token).catch((error: unknown) => {
      refusal = error
    })
  }
  for await (const part of request.parts({ limits: limitsOf(photoBytes), isPartAFile })) {
    if (part.type === 'field' && part.fieldname === TOKEN) {
      if (!isAuthenticated) await authenticateWith(String(part.value))
    } else if (part.type === 'field') {
      const { fieldname: name, value } = part
      fields.set(name, fields.has(name) ? [fields.get(name), value].flat() : value)
      // A truncated list of ids would be another list.
      if (part.valueTruncated) fault = new RequestFault(422, 'A field of the form is too long.', { field: name })
    } else if (part.fieldname !== FIELD || files.length > 0 || refusal !== undefined) {
      if (part.fieldname === FIELD) fault = imageMissing(`The form must have one file in a field "${FIELD}".`)
      part.file.resume()
    } else {
      files.push(await pictures.storeUpload(part.file, signal))
      // The parser cuts a file at the limit and sets this flag.
      if (part.file.truncated)
        fault = imageTooLarge(`The picture is too large: at most ${Math.floor(photoBytes / 1024)} KiB.`)
    }
  }
  if (!isAuthenticated) await authenticateWith(undefined)
  return { fields: Object.fromEntries(fields), fault, refusal }
}

/** Whether a field is an option. The name of a list may end with brackets. */
function isOption(name = ''): boolean {
  return OPTIONS.has(name.replace(/\[\]$/, ''))
}

function limitsOf(photoBytes: number) {
  const { formFields: parts, fieldBytes: fieldSize, fieldNameBytes: fieldNameSize } = PHOTO_LIMITS
  return { parts, fieldSize, fieldNameSize, fileSize: photoBytes, headerPairs: 20 }
}

/** Stops reading after `maxBytes` bytes, far more than a client sends by mistake. */
function cutAfter(
  raw: IncomingMessage,
  maxBytes: number,
): { readonly signal: AbortSignal; readonly happens: Promise<never> } {
  const cutOff = new AbortController()
  const happens = new Promise<never>((_, reject) => {
    let receivedBytes = 0
    raw.on('data', (chunk: Buffer) => {
      receivedBytes += chunk.length
      if (receivedBytes <= maxBytes || cutOff.signal.aborted) return
      raw.unpipe()
      raw.pause()
      cutOff.abort()
      reject(imageTooLarge('The request is far too large.', CLOSE_CONNECTION))
    })
  })
  happens.catch(() => {}) // the form may end first, and then nothing awaits this promise
  return { signal: cutOff.signal, happens }
}

/** Closes the connection: the rest of the body would be parsed as the next request. */
const CLOSE_CONNECTION = { headers: { connection: 'close' } }

function imageMissing(message: string): RequestFault {
  return new RequestFault(422, message, { reason: 'image_missing', field: FIELD })
}

function imageTooLarge(message: string, more: Partial<typeof CLOSE_CONNECTION> = {}): RequestFault {
  return new RequestFault(422, message, { ...more, reason: 'image_too_large', field: FIELD })
}

/** Errors of the parser are errors of the client. Errors of the disk, which have a `syscall`, and of the store are not. */
function faultOf(error: unknown): unknown {
  if (
    !(error instanceof Error) ||
    error instanceof RequestFault ||
    'syscall' in error ||
    error instanceof StorageUnavailable
  )
    return error
  if ('statusCode' in error && error.statusCode === 413) {
    return new RequestFault(422, 'The form has too many parts.', { ...CLOSE_CONNECTION, reason: 'malformed_body' })
  }
  return new RequestFault(400, 'The form cannot be read to its end.', { ...CLOSE_CONNECTION, reason: 'malformed_body' })
}
