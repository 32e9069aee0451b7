import { createHash } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { PHOTO_LIMITS } from '../../domain/photos/limits.js'
import {
  type ClaimedKey,
  claimKey,
  type KeyOwner,
  releaseKey,
  type StoredResponse,
  storeIdempotentResponse,
} from '../../persistence/accounts/idempotency-keys.js'
import { withRequestContext } from '../../services/services.js'
import { stripQuery } from '../server/paths.js'
import { RequestFault } from '../server/request-faults.js'
import { hashUpload, type UploadHash } from '../uploads/upload-hash.js'
import { hasFormBody } from './authentication.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** The hash of a multipart body, computed while the handler reads it. */
    uploadHash: UploadHash | undefined
    /** Set while this request has claimed its key. */
    claimedKey: (ClaimedKey & { readonly requestHash: Buffer }) | undefined
  }
}

/** Headers that are stored with a response; the others are set for each request. */
const STORED_HEADERS = ['content-type', 'link', 'location']
const RETRY_AFTER_SECONDS = 2
const LOST_RESPONSE_TEXT =
  'This request took effect, but its response is lost. Fetch the resource to check; a request with another Idempotency-Key runs again.'

/**
 * Runs a POST with an `Idempotency-Key` once within a day. A repeated request, sent because the response was lost, gets the stored
 * response. The key belongs to the authorization, so it stays valid with a new token.
 */
export function addIdempotency(app: FastifyInstance): void {
  app.decorateRequest('uploadHash', undefined)

  async function watchUpload(request: FastifyRequest): Promise<void> {
    const { 'content-type': type = '' } = request.headers
    if (hasKey(request) && /^multipart\//i.test(type)) request.uploadHash = hashUpload(request.raw, type)
  }

  async function claimOrReplay(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    if (!hasKey(request)) return undefined
    const owner = ownerOf(request)
    const requestHash = hashRequest(request) // before validation changes texts to numbers
    const keyState = await claimKey(app.services.db, owner)
    if (keyState.state === 'claimed') request.claimedKey = { ...owner, claim: keyState.claim, requestHash }
    else if (keyState.state === 'running') throw stillRunning()
    else if (keyState.state === 'lost')
      throw new RequestFault(409, LOST_RESPONSE_TEXT, { reason: 'idempotency_result_lost' })
    else return replay(request, reply, requestHash, keyState)
    return undefined
  }

  /**
   * Gives the claimed key to the transactions of the request. Not for uploads: files of an interrupted upload are deleted later, so the
   * request may run again.
   */
  async function passClaim(request: FastifyRequest): Promise<void> {
    if (request.claimedKey === undefined || request.uploadHash !== undefined) return
    request.services = withRequestContext(request.services, { readClaimedKey: () => request.claimedKey })
  }

  async function storeResponse(request: FastifyRequest, reply: FastifyReply, payload: unknown): Promise<unknown> {
    const { claimedKey } = request
    if (claimedKey === undefined) return payload
    request.claimedKey = undefined
    try {
      const fingerprint = fingerprintOf(claimedKey.requestHash, request)
      const response = fingerprint === undefined ? undefined : responseOf(reply, fingerprint, payload)
      if (response === undefined || mayDifferNextTime(reply)) await releaseKey(app.services.db, claimedKey)
      else await storeIdempotentResponse(app.services.db, claimedKey, response)
    } catch (err) {
      // The claim stays, so repeated requests get a 409 until it expires.
      request.log.warn({ err }, 'storing the response of an Idempotency-Key failed')
    }
    return payload
  }

  app.addHook('onRoute', (route) => {
    if (route.method !== 'POST') return
    route.preParsing = [watchUpload, ...listOf(route.preParsing)]
    route.preValidation = [claimOrReplay, ...listOf(route.preValidation)]
    route.preHandler = [passClaim, ...listOf(route.preHandler)]
    route.onSend = [...listOf(route.onSend), storeResponse]
  })
}

function listOf<Hook>(hooks: Hook | Hook[] | undefined): Hook[] {
  return hooks === undefined ? [] : ([hooks].flat() as Hook[]) // the types do not exclude a hook that is a list
}

function hasKey({ headers }: FastifyRequest): boolean {
  return headers['idempotency-key'] !== undefined
}

function ownerOf({ headers, viewer }: FastifyRequest): KeyOwner {
  const key = String(headers['idempotency-key'])
  if (!/^[\x21-\x7e]{1,255}$/.test(key)) {
    throw new RequestFault(400, 'An Idempotency-Key must have 1 to 255 visible ASCII characters.', {
      reason: 'idempotency_key_invalid',
    })
  }
  if (viewer.authorizationId === undefined) throw new Error('The viewer of a request has no authorization.')
  return { authorizationId: viewer.authorizationId, key }
}

/** Hashes method, path, query and body, without the access token, which may be a new one, and without the parts of an upload. */
function hashRequest(request: FastifyRequest): Buffer {
  const { method, url, query, body, uploadHash } = request
  const fields = uploadHash === undefined ? withoutToken(body ?? {}, request) : 'parts'
  const content = [method, stripQuery(url), Object.entries(Object(query)).filter(isNoToken), fields]
  return createHash('sha256').update(canonicalJson(content)).digest()
}

/** `JSON.parse` reads any depth of nesting, but `JSON.stringify` overflows the stack. */
function canonicalJson(content: unknown): string {
  try {
    return JSON.stringify(content, sortFields)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new RequestFault(422, 'A body with an Idempotency-Key must not be nested that deeply.', {
      reason: 'malformed_body',
    })
  }
}

/** The order of the fields of an object has no meaning. */
function sortFields(_name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)))
}

/** Undefined: the upload was not read completely. */
function fingerprintOf(requestHash: Buffer, { uploadHash }: FastifyRequest): Buffer | undefined {
  if (uploadHash === undefined) return requestHash
  const parts = uploadHash.digest()
  return parts === undefined ? undefined : createHash('sha256').update(requestHash).update(parts).digest()
}

function withoutToken(body: unknown, request: FastifyRequest): unknown {
  return hasFormBody(request) ? Object.fromEntries(Object.entries(Object(body)).filter(isNoToken)) : body
}

function isNoToken([name]: readonly [string, unknown]): boolean {
  return name !== 'access_token'
}

async function replay(
  request: FastifyRequest,
  reply: FastifyReply,
  requestHash: Buffer,
  stored: StoredResponse,
): Promise<FastifyReply> {
  const { photoBytes } = request.server.services.config
  await request.uploadHash?.read(photoBytes * PHOTO_LIMITS.oversizeReadFactor)
  if (fingerprintOf(requestHash, request)?.equals(stored.fingerprint) !== true) {
    throw new RequestFault(422, 'This Idempotency-Key was used for another request.', {
      reason: 'idempotency_key_reused',
    })
  }
  return reply
    .code(stored.status)
    .headers(stored.headers)
    .header('idempotency-replayed', 'true')
    .send(stored.body ?? undefined)
}

function stillRunning(): RequestFault {
  return new RequestFault(409, 'A request with this Idempotency-Key is still being answered.', {
    headers: { 'retry-after': String(RETRY_AFTER_SECONDS) },
    reason: 'idempotency_key_in_use',
  })
}

/** The status does not depend on the request alone, so the response is not stored. */
function mayDifferNextTime({ statusCode }: FastifyReply): boolean {
  return statusCode >= 500 || statusCode === 429
}

function responseOf(reply: FastifyReply, fingerprint: Buffer, payload: unknown): StoredResponse {
  const headers = Object.fromEntries(
    STORED_HEADERS.flatMap((name) => {
      const value = reply.getHeader(name)
      return value === undefined ? [] : [[name, String(value)]]
    }),
  )
  return { fingerprint, status: reply.statusCode, headers, body: typeof payload === 'string' ? payload : null }
}
