import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { RECEIVE_LIMITS } from '../../../jobs/inbound/limits.js'
import { QueueDrained, QueueUnavailable } from '../../../jobs/queues/queue-unavailable.js'
import { isDatabaseUnavailable } from '../../../persistence/database/errors.js'
import { mayBeEncryptedEnvelope } from '../../../protocol/envelopes/encrypted-envelope.js'
import { countRateLimited } from '../../limits/rejection-metrics.js'
import { HTTP_LIMITS } from '../../server/limits.js'
import { readRawBody } from '../../server/raw-body.js'
import { addRequestSpans } from '../../server/request-log.js'
import type { InboundEndpoint, ReceiveOutcome } from './inbound-endpoint.js'

/**
 * Receives messages of other pods (FEDERATION.md, "Endpoints"). A message is in the queue before it is answered; workers read it.
 */
export const receiveRoutes: FastifyPluginAsync = async (app) => {
  const { inboundEndpoint } = app
  const options = { config: { public: true }, schema: { hide: true } } as const

  // A child logger costs as much as routing the request, and these routes log one line at most.
  app.setChildLoggerFactory(() => app.log)

  addRequestSpans(app)

  // The body is the message, regardless of its declared type. The handler reads it, so no parser may.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _body, done) => done(null))
  app.addHook('onRequest', ({ raw }, _reply, done) => {
    delete raw.headers['content-type']
    done()
  })

  app.post('/receive/public', options, async (request, reply) => {
    const outcome = app.isUnderPressure() ? 'overloaded' : await receivePublic(inboundEndpoint, request)
    inboundEndpoint.count('public', outcome)
    return sendOutcome(reply, outcome)
  })

  app.post<{ Params: { guid: string } }>('/receive/users/:guid', options, async (request, reply) => {
    const outcome = app.isUnderPressure()
      ? 'overloaded'
      : await receivePrivate(inboundEndpoint, request, request.params.guid)
    inboundEndpoint.count('private', outcome)
    return sendOutcome(reply, outcome)
  })
}

function receivePublic({ packing }: InboundEndpoint, request: FastifyRequest): Promise<ReceiveOutcome> {
  return acceptBody(packing, request, async (envelope) => {
    if (envelope === '') return 'malformed'
    await packing.acceptPublic(envelope, request, request.id)
    return 'accepted'
  })
}

async function receivePrivate(
  { packing, recipients }: InboundEndpoint,
  request: FastifyRequest,
  recipientGuid: string,
): Promise<ReceiveOutcome> {
  const lookup = await runUnlessUnavailable(() => recipients.isLocal(recipientGuid))
  if (typeof lookup === 'string') return lookup
  if (!lookup) return 'unknown_recipient'
  return acceptBody(packing, request, async (envelope) => {
    if (envelope.length <= RECEIVE_LIMITS.examinedCharacters && !mayBeEncryptedEnvelope(envelope)) return 'malformed'
    await packing.acceptPrivate({ recipientGuid, envelope, trace: request.id }, request)
    return 'accepted'
  })
}

/** Reads the message unless a limit is reached. Its bytes count as held for the sender until the request is answered. */
async function acceptBody(
  { refusalOf, hold }: InboundEndpoint['packing'],
  request: FastifyRequest,
  accept: (text: string) => Promise<ReceiveOutcome>,
): Promise<ReceiveOutcome> {
  const refusal = refusalOf(request)
  if (refusal !== undefined) return refusal
  if ((request.headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity') return 'compressed'
  const holdForSender = (bytes: number) => hold(request, bytes)
  const options = { limit: RECEIVE_LIMITS.bodyBytes, hold: holdForSender, refusal: () => refusalOf(request) }
  const body = await readRawBody(request.raw, options)
  if (typeof body === 'string') return body
  try {
    return await runUnlessUnavailable(() => accept(textOf(body)))
  } finally {
    holdForSender(-body.length)
  }
}

/** Replaces NUL, which PostgreSQL cannot store in a text. A message that contains it is malformed anyway. */
function textOf(body: Buffer): string {
  const text = body.toString('utf8')
  return text.includes('\0') ? text.replaceAll('\0', '\ufffd') : text
}

async function runUnlessUnavailable<Result>(
  work: () => Promise<Result>,
): Promise<Result | 'drained' | 'queue_away' | 'database_away'> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof QueueDrained) return 'drained'
    if (error instanceof QueueUnavailable) return 'queue_away'
    if (isDatabaseUnavailable(error)) return 'database_away'
    throw error
  }
}

interface OutcomeResponse {
  readonly status: number
  readonly text?: string
  /** Seconds until another attempt can succeed. */
  readonly retryAfter?: number
}

const UNAVAILABLE = {
  status: 503,
  text: 'The pod cannot accept messages at the moment. Please send this one again soon.',
  retryAfter: HTTP_LIMITS.retryAfterSeconds,
}

const RESPONSES: Readonly<Record<ReceiveOutcome, OutcomeResponse>> = {
  accepted: { status: 202 },
  malformed: { status: 202 },
  unknown_recipient: { status: 404, text: 'No local person has this guid.' },
  too_large: { status: 413, text: 'The message is too large.' },
  compressed: { status: 415, text: 'The message must not be compressed.' },
  broken_off: { status: 400, text: 'The message is incomplete.' },
  overloaded: UNAVAILABLE,
  queue_away: UNAVAILABLE,
  database_away: UNAVAILABLE,
  drained: { ...UNAVAILABLE, retryAfter: RECEIVE_LIMITS.retryAfterSeconds },
  full: {
    status: 503,
    text: 'The pod has more messages than it can hold. Please send it again later.',
    retryAfter: RECEIVE_LIMITS.retryAfterSeconds,
  },
  over_share: {
    status: 429,
    text: 'The pod has too many messages from this address. Please send it again later.',
    retryAfter: RECEIVE_LIMITS.retryAfterSeconds,
  },
}

function sendOutcome(reply: FastifyReply, outcome: ReceiveOutcome): FastifyReply {
  if (outcome === 'over_share') countRateLimited('inbound_bytes')
  const { status, text, retryAfter } = RESPONSES[outcome]
  const { id: trace, log } = reply.request
  log.debug({ trace, status, outcome }, 'inbound message answered')
  reply.code(status).header('x-request-id', trace)
  if (retryAfter !== undefined) reply.header('retry-after', retryAfter)
  return text === undefined ? reply.send() : reply.type('text/plain; charset=utf-8').send(`${text}\n`)
}
