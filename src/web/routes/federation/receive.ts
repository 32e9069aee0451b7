import type { FastifyPluginAsync, FastifyReply, FastifyRequest } from 'fastify'
import { QueueUnavailable } from '../../../jobs/queues/queue-unavailable.js'
import { HTTP_LIMITS, RECEIVE_LIMITS } from '../../../limits.js'
import { isDatabaseUnavailable } from '../../../persistence/database/errors.js'
import { mayBeEncryptedEnvelope } from '../../../protocol/envelopes/encrypted-envelope.js'
import { countRateLimited } from '../../limits/rejection-metrics.js'
import { readRawBody } from '../../server/raw-body.js'
import type { InboundEndpoint, Outcome } from './inbound-endpoint.js'

/** Messages of other pods (FEDERATION.md, "Endpoints"): safe in the queue, then answered; a worker looks into them. */
export const receiveRoutes: FastifyPluginAsync = async (app) => {
  const { door } = app
  const options = { config: { public: true }, schema: { hide: true } } as const

  // A log of its own costs a request as much as finding its route; here at most one line is written about it.
  app.setChildLoggerFactory(() => app.log)

  // The body is the message, whatever its type is said to be, and only we read it.
  app.removeAllContentTypeParsers()
  app.addContentTypeParser('*', (_request, _body, done) => done(null))
  app.addHook('onRequest', ({ raw }, _reply, done) => {
    delete raw.headers['content-type']
    done()
  })

  app.post('/receive/public', options, async (request, reply) => {
    const outcome = app.isUnderPressure() ? 'overloaded' : await takePublic(door, request)
    door.count('public', outcome)
    return answer(reply, outcome)
  })

  app.post<{ Params: { guid: string } }>('/receive/users/:guid', options, async (request, reply) => {
    const outcome = app.isUnderPressure() ? 'overloaded' : await takePrivate(door, request, request.params.guid)
    door.count('private', outcome)
    return answer(reply, outcome)
  })
}

function takePublic({ packing }: InboundEndpoint, request: FastifyRequest): Promise<Outcome> {
  return takeIn(packing, request, async (envelope) => {
    if (envelope === '') return 'malformed'
    await packing.acceptPublic(envelope, request)
    return 'accepted'
  })
}

async function takePrivate(
  { packing, recipients }: InboundEndpoint,
  request: FastifyRequest,
  recipientGuid: string,
): Promise<Outcome> {
  const isKnown = await orAway(() => recipients.isLocal(recipientGuid))
  if (isKnown === false) return 'unknown_recipient'
  if (isKnown !== true) return isKnown
  return takeIn(packing, request, async (envelope) => {
    if (envelope.length <= RECEIVE_LIMITS.examinedCharacters && !mayBeEncryptedEnvelope(envelope)) return 'malformed'
    await packing.acceptPrivate({ recipientGuid, envelope }, request)
    return 'accepted'
  })
}

/** Reads the message unless there is too much already, and has it held by somebody until it is answered. */
async function takeIn(
  { refusalOf, hold }: InboundEndpoint['packing'],
  request: FastifyRequest,
  accept: (text: string) => Promise<Outcome>,
): Promise<Outcome> {
  const refusal = refusalOf(request)
  if (refusal !== undefined) return refusal
  if ((request.headers['content-encoding'] ?? 'identity').toLowerCase() !== 'identity') return 'compressed'
  const holdForSender = (bytes: number) => hold(bytes, request)
  const options = { limit: RECEIVE_LIMITS.bodyBytes, hold: holdForSender, refusal: () => refusalOf(request) }
  const body = await readRawBody(request.raw, options)
  if (typeof body === 'string') return body
  try {
    return await orAway(() => accept(textOf(body)))
  } finally {
    holdForSender(-body.length)
  }
}

/** PostgreSQL has no text with NUL in it; a message with one could only have ended as malformed. */
function textOf(body: Buffer): string {
  const text = body.toString('utf8')
  return text.includes('\0') ? text.replaceAll('\0', '\ufffd') : text
}

async function orAway<Result>(work: () => Promise<Result>): Promise<Result | 'queue_away' | 'database_away'> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof QueueUnavailable) return 'queue_away'
    if (isDatabaseUnavailable(error)) return 'database_away'
    throw error
  }
}

interface Answer {
  readonly status: number
  readonly text?: string
  /** Seconds until another try has a chance. */
  readonly retryAfter?: number
}

const AWAY = {
  status: 503,
  text: 'The pod cannot take messages at the moment. Please send it again soon.',
  retryAfter: HTTP_LIMITS.retryAfterSeconds,
}

const answers: Readonly<Record<Outcome, Answer>> = {
  accepted: { status: 202 },
  malformed: { status: 202 },
  unknown_recipient: { status: 404, text: 'Nobody with this guid lives here.' },
  too_large: { status: 413, text: 'The message is too large.' },
  compressed: { status: 415, text: 'The message must not be compressed.' },
  broken_off: { status: 400, text: 'The message ended too early.' },
  overloaded: AWAY,
  queue_away: AWAY,
  database_away: AWAY,
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

function answer(reply: FastifyReply, outcome: Outcome): FastifyReply {
  if (outcome === 'over_share') countRateLimited('inbound_bytes')
  const { status, text, retryAfter } = answers[outcome]
  reply.code(status)
  if (retryAfter !== undefined) reply.header('retry-after', retryAfter)
  return text === undefined ? reply.send() : reply.type('text/plain; charset=utf-8').send(`${text}\n`)
}
