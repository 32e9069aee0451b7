import { createHash } from 'node:crypto'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { PHOTO_LIMITS } from '../../limits.js'
import {
  type ClaimedKey,
  claimKey,
  type KeyOwner,
  releaseKey,
  type StoredAnswer,
  storeAnswer,
  workOn,
} from '../../persistence/accounts/idempotency-keys.js'
import { pathOf } from '../server/paths.js'
import { RequestFault } from '../server/request-faults.js'
import { hashUpload, type UploadHash } from '../uploads/upload-hash.js'

declare module 'fastify' {
  interface FastifyRequest {
    /** Of a multipart body, which no hook has read. */
    uploadHash: UploadHash | undefined
    /** Set while this request is the one that works on its key. */
    claimedKey: (ClaimedKey & { readonly asked: Buffer }) | undefined
  }
}

/** Of an answer; all others are made for each request. */
const KEPT_HEADERS = ['content-type', 'link', 'location']
const RETRY_AFTER_SECONDS = 2
const LOST =
  'This request took effect, but its response is lost. Fetch the resource to check; a request with another Idempotency-Key runs again.'

/**
 * A POST with an `Idempotency-Key` is done once within a day: who sends it again, because the answer got lost, gets the same
 * answer. The key belongs to the authorization, so that a new token does not matter.
 */
export function addIdempotency(app: FastifyInstance): void {
  app.decorateRequest('uploadHash', undefined)
  app.decorateRequest('claimedKey', undefined)

  async function watchUpload(request: FastifyRequest): Promise<void> {
    const { 'content-type': type = '' } = request.headers
    if (hasKey(request) && /^multipart\//i.test(type)) request.uploadHash = hashUpload(request.raw, type)
  }

  async function claimOrReplay(request: FastifyRequest, reply: FastifyReply): Promise<unknown> {
    if (!hasKey(request)) return undefined
    const owner = ownerOf(request)
    const asked = hashOfAsked(request) // before anybody reads a number into a text
    const known = await claimKey(app.pod.db, owner)
    if (known.state === 'claimed') request.claimedKey = { ...owner, claim: known.claim, asked }
    else if (known.state === 'running') throw stillRunning()
    else if (known.state === 'lost') throw new RequestFault(409, LOST, { reason: 'idempotency_result_lost' })
    else return replay(request, reply, asked, known)
    return undefined
  }

  /** What an upload has left behind is taken away again, so that may be done twice. */
  function begin(request: FastifyRequest, _reply: FastifyReply, done: () => void): void {
    if (request.claimedKey === undefined || request.uploadHash !== undefined) done()
    else workOn(() => request.claimedKey, done)
  }

  async function keep(request: FastifyRequest, reply: FastifyReply, payload: unknown): Promise<unknown> {
    const { claimedKey } = request
    if (claimedKey === undefined) return payload
    request.claimedKey = undefined
    try {
      const fingerprint = fingerprintOf(claimedKey.asked, request)
      const answer = fingerprint === undefined ? undefined : answerOf(reply, fingerprint, payload)
      if (answer === undefined || mayEndOtherwise(reply)) await releaseKey(app.pod.db, claimedKey)
      else await storeAnswer(app.pod.db, claimedKey, answer)
    } catch (err) {
      // Whoever asks again is told for a while that it is under way.
      request.log.warn({ err }, 'could not keep the answer to a request with a key')
    }
    return payload
  }

  app.addHook('onRoute', (route) => {
    if (route.method !== 'POST') return
    route.preParsing = [watchUpload, ...listOf(route.preParsing)]
    route.preValidation = [claimOrReplay, ...listOf(route.preValidation)]
    route.preHandler = [begin, ...listOf(route.preHandler)]
    route.onSend = [...listOf(route.onSend), keep]
  })
}

function listOf<Hook>(hooks: Hook | Hook[] | undefined): Hook[] {
  return hooks === undefined ? [] : ([hooks].flat() as Hook[]) // a hook is no list
}

function hasKey({ headers }: FastifyRequest): boolean {
  return headers['idempotency-key'] !== undefined
}

function ownerOf({ headers, viewer }: FastifyRequest): KeyOwner {
  const key = String(headers['idempotency-key'])
  if (!/^[\x21-\x7e]{1,255}$/.test(key)) {
    throw new RequestFault(400, 'An Idempotency-Key has 1 to 255 visible characters of ASCII.', {
      reason: 'idempotency_key_invalid',
    })
  }
  if (viewer.authorizationId === undefined) throw new Error('Whoever came with a token has an authorization.')
  return { authorizationId: viewer.authorizationId, key }
}

/** All but the parts of an upload. The same where a token stands in it, which may be another one by now. */
function hashOfAsked(request: FastifyRequest): Buffer {
  const { method, url, query, body, uploadHash } = request
  const fields = uploadHash === undefined ? withoutToken(body ?? {}, request) : 'parts'
  const asked = [method, pathOf(url), Object.entries(Object(query)).filter(isNoToken), fields]
  return createHash('sha256').update(textOf(asked)).digest()
}

/** JSON is read to any depth, but not written. */
function textOf(asked: unknown): string {
  try {
    return JSON.stringify(asked, inOrder)
  } catch (error) {
    if (!(error instanceof RangeError)) throw error
    throw new RequestFault(422, 'A body with an Idempotency-Key must not be nested that deeply.', {
      reason: 'malformed_body',
    })
  }
}

/** Whoever writes an object may begin with any of its fields. */
function inOrder(_name: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value
  return Object.fromEntries(Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1)))
}

/** Undefined: not all of it was read. */
function fingerprintOf(asked: Buffer, { uploadHash }: FastifyRequest): Buffer | undefined {
  if (uploadHash === undefined) return asked
  const parts = uploadHash.digest()
  return parts === undefined ? undefined : createHash('sha256').update(asked).update(parts).digest()
}

/** In JSON the name is a field like any other. */
function withoutToken(body: unknown, { headers }: FastifyRequest): unknown {
  const isForm = /^application\/x-www-form-urlencoded\b/i.test(headers['content-type'] ?? '')
  return isForm ? Object.fromEntries(Object.entries(Object(body)).filter(isNoToken)) : body
}

function isNoToken([name]: readonly [string, unknown]): boolean {
  return name !== 'access_token'
}

async function replay(
  request: FastifyRequest,
  reply: FastifyReply,
  asked: Buffer,
  kept: StoredAnswer,
): Promise<FastifyReply> {
  const { photoBytes } = request.server.pod.config
  await request.uploadHash?.read(photoBytes * PHOTO_LIMITS.timesRead)
  if (fingerprintOf(asked, request)?.equals(kept.fingerprint) !== true) {
    throw new RequestFault(422, 'This Idempotency-Key was used for another request.', {
      reason: 'idempotency_key_reused',
    })
  }
  return reply
    .code(kept.status)
    .headers(kept.headers)
    .header('idempotency-replayed', 'true')
    .send(kept.body ?? undefined)
}

function stillRunning(): RequestFault {
  return new RequestFault(409, 'A request with this Idempotency-Key is still being answered.', {
    headers: { 'retry-after': String(RETRY_AFTER_SECONDS) },
    reason: 'idempotency_key_in_use',
  })
}

/** It was not refused for what it is. */
function mayEndOtherwise({ statusCode }: FastifyReply): boolean {
  return statusCode >= 500 || statusCode === 429
}

function answerOf(reply: FastifyReply, fingerprint: Buffer, payload: unknown): StoredAnswer {
  const headers = Object.fromEntries(
    KEPT_HEADERS.flatMap((name) => {
      const value = reply.getHeader(name)
      return value === undefined ? [] : [[name, String(value)]]
    }),
  )
  return { fingerprint, status: reply.statusCode, headers, body: typeof payload === 'string' ? payload : null }
}
