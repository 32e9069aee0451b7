import type { IncomingMessage } from 'node:http'
import type { FastifyRequest } from 'fastify'
import { PHOTO_LIMITS } from '../../limits.js'
import { deleteUploads, storeUpload } from '../../persistence/photos/picture-files.js'
import { RequestFault } from '../server/request-faults.js'
import { uploadOptions } from './upload-options.js'

export interface UploadForm {
  /** Where the file lies, in the folder of uploads. */
  readonly file: string
  /** The other fields; what came several times is a list. */
  readonly fields: Readonly<Record<string, unknown>>
}

const FIELD = 'image'
const TOKEN = 'access_token'
/** All others are passed over, and none of their bytes are kept. */
const OPTIONS: ReadonlySet<string> = new Set(Object.keys(uploadOptions))

/**
 * Takes in the one file of a form as it comes, whatever it and its field are said to be. Also a form that is refused is read to
 * its end, for many clients read no answer before they have sent everything; who sends far too much is cut off.
 */
export async function readUploadForm(request: FastifyRequest, admit?: Admit): Promise<UploadForm> {
  if (!request.isMultipart()) throw imageMissing(`The picture has to come as field "${FIELD}" of a form.`)
  const { uploadsDir, photoBytes } = request.server.pod.config
  const files: string[] = []
  try {
    const cut = cutAfter(request.raw, photoBytes * PHOTO_LIMITS.timesRead)
    const form = readParts(request, { uploadsDir, photoBytes, files, signal: cut.signal, admit })
    const { fields, fault, refusal } = await Promise.race([form, cut.happens])
    if (refusal !== undefined) throw refusal
    if (fault !== undefined) throw fault
    const [file] = files
    if (file === undefined) throw imageMissing(`The form has no file in a field "${FIELD}".`)
    return { file, fields }
  } catch (error) {
    await deleteUploads(uploadsDir, files)
    throw faultOf(error)
  }
}

interface Reading {
  readonly uploadsDir: string
  readonly photoBytes: number
  /** Filled with what lies in the folder of uploads, so that it can be taken away from there. */
  readonly files: string[]
  readonly signal: AbortSignal
  readonly admit: Admit | undefined
}

/** Called once, with the token of the form, as soon as it is read; throws where it is refused. */
export type Admit = (token: string | undefined) => Promise<void>

/** The fault is what is wrong with a form that could be read. */
async function readParts(
  request: FastifyRequest,
  { uploadsDir, photoBytes, files, signal, admit }: Reading,
): Promise<{
  readonly fields: Record<string, unknown>
  readonly fault: RequestFault | undefined
  /** Of the token, or undefined. */
  readonly refusal: unknown
}> {
  const fields = new Map<string, unknown>()
  let fault: RequestFault | undefined
  let refusal: unknown
  let isAdmitted = admit === undefined
  const isPartAFile = (name?: string) => !isOption(name) && !(name === TOKEN && admit !== undefined)
  const admitWith = async (token: string | undefined) => {
    isAdmitted = true
    await admit?.(token).catch((error: unknown) => {
      refusal = error
    })
  }
  for await (const part of request.parts({ limits: limitsOf(photoBytes), isPartAFile })) {
    if (part.type === 'field' && part.fieldname === TOKEN) {
      if (!isAdmitted) await admitWith(String(part.value))
    } else if (part.type === 'field') {
      const { fieldname: name, value } = part
      fields.set(name, fields.has(name) ? [fields.get(name), value].flat() : value)
      // What is left of a list of numbers is another list.
      if (part.valueTruncated) fault = new RequestFault(422, 'A field of the form is too long.', { field: name })
    } else if (part.fieldname !== FIELD || files.length > 0 || refusal !== undefined) {
      if (part.fieldname === FIELD) fault = imageMissing(`The form must have one file in a field "${FIELD}".`)
      part.file.resume()
    } else {
      files.push(await storeUpload(uploadsDir, part.file, signal))
      // The reader gives no more than the limit, and says whether it has left anything out.
      if (part.file.truncated)
        fault = imageTooLarge(`The picture is too large: at most ${Math.floor(photoBytes / 1024)} KiB.`)
    }
  }
  if (!isAdmitted) await admitWith(undefined)
  return { fields: Object.fromEntries(fields), fault, refusal }
}

/** A list may have brackets. */
function isOption(name = ''): boolean {
  return OPTIONS.has(name.replace(/\[\]$/, ''))
}

function limitsOf(photoBytes: number) {
  const { formFields: parts, fieldBytes: fieldSize, fieldNameBytes: fieldNameSize } = PHOTO_LIMITS
  return { parts, fieldSize, fieldNameSize, fileSize: photoBytes, headerPairs: 20 }
}

/** Stops reading after so many bytes: nobody sends so much by mistake. */
function cutAfter(
  raw: IncomingMessage,
  most: number,
): { readonly signal: AbortSignal; readonly happens: Promise<never> } {
  const cut = new AbortController()
  const happens = new Promise<never>((_, reject) => {
    let seen = 0
    raw.on('data', (chunk: Buffer) => {
      seen += chunk.length
      if (seen <= most || cut.signal.aborted) return
      raw.unpipe()
      raw.pause()
      cut.abort()
      reject(imageTooLarge('The request is far too large.', GOODBYE))
    })
  })
  happens.catch(() => {}) // the form may have been at its end before
  return { signal: cut.signal, happens }
}

/** What is left of the request would be taken for the next one. */
const GOODBYE = { headers: { connection: 'close' } }

function imageMissing(message: string): RequestFault {
  return new RequestFault(422, message, { reason: 'image_missing', field: FIELD })
}

function imageTooLarge(message: string, more: Partial<typeof GOODBYE> = {}): RequestFault {
  return new RequestFault(422, message, { ...more, reason: 'image_too_large', field: FIELD })
}

/** Errors of the reader are what the client has sent; those of the disk have the call that failed. */
function faultOf(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof RequestFault || 'syscall' in error) return error
  if ('statusCode' in error && error.statusCode === 413) {
    return new RequestFault(422, 'The form has too many parts.', { ...GOODBYE, reason: 'malformed_body' })
  }
  return new RequestFault(400, 'The form cannot be read to its end.', { ...GOODBYE, reason: 'malformed_body' })
}
