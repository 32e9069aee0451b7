import { promisify } from 'node:util'
import { brotliCompress, brotliCompressSync, constants, gzip, gzipSync } from 'node:zlib'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { addVary } from './headers.js'
import { COMPRESSION_LIMITS } from './limits.js'

type Coding = 'br' | 'gzip'

/**
 * Compresses text responses to GET and HEAD for clients that accept it. Register it only for routes whose responses hold no
 * secret that a browser sends along by itself: the length of a compressed page with a form token and reflected input reveals
 * the token (BREACH). The OpenID Connect and sign-in pages therefore never have it.
 *
 * It must be the last `onSend` hook: all others read the text.
 */
export function addCompression(app: FastifyInstance): void {
  app.addHook('onSend', async (request, reply, payload) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') return payload
    if (reply.statusCode !== 200 && reply.statusCode !== 304) return payload
    addVary(reply, 'Accept-Encoding')
    if (!isText(payload) || reply.hasHeader('content-encoding')) return payload
    const bytes = Buffer.byteLength(payload)
    if (bytes < COMPRESSION_LIMITS.minBytes || !isCompressible(reply.getHeader('content-type'))) return payload
    const coding = acceptedCoding(request)
    if (coding === undefined) return payload
    const isSmall = bytes <= COMPRESSION_LIMITS.bytesOnEventLoop
    const compressedPayload = isSmall ? compressNow[coding](payload) : await compressInThread[coding](payload)
    reply.header('content-encoding', coding).removeHeader('content-length')
    return compressedPayload
  })
}

function isText(payload: unknown): payload is string | Buffer {
  return typeof payload === 'string' || Buffer.isBuffer(payload)
}

function isCompressible(type: unknown): boolean {
  return typeof type === 'string' && /^(?:text\/(?!event-stream)|application\/json\b)/.test(type)
}

/** Brotli is smaller at the same cost, so it is preferred unless the client weighs gzip higher. */
function acceptedCoding({ headers }: FastifyRequest): Coding | undefined {
  const weights = weightsOf(String(headers['accept-encoding'] ?? ''))
  const weightOf = (coding: Coding) => weights.get(coding) ?? weights.get('*') ?? 0
  const [br, gzip] = [weightOf('br'), weightOf('gzip')]
  if (br === 0 && gzip === 0) return undefined
  return br >= gzip ? 'br' : 'gzip'
}

/** Quality values of `Accept-Encoding` (RFC 9110, 12.5.3). Malformed parts are ignored. */
function weightsOf(header: string): ReadonlyMap<string, number> {
  const weights = new Map<string, number>()
  for (const part of header.toLowerCase().split(',')) {
    const [, coding, weight = '1'] = /^\s*([\w*-]+)\s*(?:;\s*q=([01](?:\.\d{0,3})?))?\s*$/.exec(part) ?? []
    if (coding !== undefined) weights.set(coding.replace(/^x-gzip$/, 'gzip'), Number(weight))
  }
  return weights
}

/** Quality 3 costs what gzip costs and is smaller; from 4 on the time doubles (docs/decisions/0041-compressed-responses-and-etags.md). */
const BROTLI = {
  params: {
    [constants.BROTLI_PARAM_QUALITY]: 3,
    [constants.BROTLI_PARAM_MODE]: constants.BROTLI_MODE_TEXT,
    [constants.BROTLI_PARAM_LGWIN]: 18,
  },
}
const GZIP = { level: 4 }

const compressNow: Readonly<Record<Coding, (text: string | Buffer) => Buffer>> = {
  br: (text) => brotliCompressSync(text, BROTLI),
  gzip: (text) => gzipSync(text, GZIP),
}

const inThread = { br: promisify(brotliCompress), gzip: promisify(gzip) }
const compressInThread: Readonly<Record<Coding, (text: string | Buffer) => Promise<Buffer>>> = {
  br: (text) => inThread.br(text, BROTLI),
  gzip: (text) => inThread.gzip(text, GZIP),
}
