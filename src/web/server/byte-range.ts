import type { FastifyReply, FastifyRequest } from 'fastify'
import type { ByteRange } from '../../persistence/photos/picture-storage.js'
import { RequestFault } from './request-faults.js'

/**
 * Sets the headers of an answer with the whole file, or with the part that the request asks for. The ETag of the file must be set before.
 * Returns that part; undefined: the whole file. Throws a 416 for a part outside of the file.
 */
export function beginFile(request: FastifyRequest, reply: FastifyReply, bytes: number): ByteRange | undefined {
  const isPartWanted = request.method === 'GET' && isSameFile(request, reply)
  const range = isPartWanted ? readRange(request.headers.range, bytes) : undefined
  if (range === 'outside') {
    const headers = { 'content-range': `bytes */${bytes}` }
    throw new RequestFault(416, 'The file has no such bytes.', { headers })
  }
  reply.header('accept-ranges', 'bytes')
  if (range !== undefined) reply.code(206).header('content-range', `bytes ${range.start}-${range.end}/${bytes}`)
  reply.header('content-length', range === undefined ? bytes : range.end - range.start + 1)
  return range
}

/** Whether the client continues the file that it has the beginning of (RFC 9110, 13.1.5). */
function isSameFile({ headers }: FastifyRequest, reply: FastifyReply): boolean {
  const etag = headers['if-range']
  return etag === undefined || etag === reply.getHeader('etag')
}

/** One range of bytes (RFC 9110, 14.2). Undefined: the whole file, as for several ranges. */
function readRange(header: string | undefined, bytes: number): ByteRange | 'outside' | undefined {
  const [, first = '', last = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? '') ?? []
  if (first === '' && last === '') return undefined
  const start = first === '' ? Math.max(0, bytes - Number(last)) : Number(first)
  const end = first === '' || last === '' ? bytes - 1 : Math.min(Number(last), bytes - 1)
  if (first !== '' && last !== '' && Number(last) < start) return undefined
  return start >= bytes || end < start ? 'outside' : { start, end }
}
