import formbody from '@fastify/formbody'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { readForm } from '../forms/form-body.js'
import { MalformedBody, RequestFault } from './request-faults.js'

const MEDIA_TYPE = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+[\t ]*(?:;|$)/
const UNKNOWN = 'application/octet-stream'

/**
 * Adds parsers for JSON objects and forms; an empty body is read as an empty object. Another media type is refused on routes that
 * need a body and ignored on others: some clients label an empty body as text.
 */
export async function addBodyReaders(app: FastifyInstance): Promise<void> {
  // Fields like __proto__ are removed: no schema has them, and unknown fields are ignored.
  const readJson = app.getDefaultJsonParser('remove', 'remove')

  app.removeAllContentTypeParsers()
  await app.register(formbody, { parser: readForm })
  app.addContentTypeParser('application/json', { parseAs: 'string' }, (request, text, done) => {
    if (text.length === 0) return done(null, {})
    readJson(request, String(text), (error, value) => {
      if (error) return done(new MalformedBody('The body is not valid JSON.'))
      if (!isObject(value)) return done(new MalformedBody('The body must be a JSON object.'))
      done(null, value)
    })
  })
  app.addContentTypeParser('*', { parseAs: 'buffer' }, (request, bytes, done) => {
    if (bytes.length === 0 || !needsBody(request)) return done(null, {})
    done(new RequestFault(415, 'The body must be JSON or a form.'))
  })

  app.addHook('onRequest', refuseCompressed)
  app.addHook('onRequest', (request, _reply, done) => {
    // Fastify refuses a malformed media type before it calls a parser.
    const type = request.headers['content-type']
    if (type !== undefined && !MEDIA_TYPE.test(type) && !needsBody(request))
      request.raw.headers['content-type'] = UNKNOWN
    done()
  })
  app.addHook('preValidation', async (request) => {
    if (request.body === undefined && needsBody(request)) request.body = {}
  })
}

/** Compressed bodies are refused: a few kilobytes could become gigabytes. */
export async function refuseCompressed({ headers }: FastifyRequest): Promise<void> {
  const encoding = headers['content-encoding'] ?? 'identity'
  if (encoding.toLowerCase() !== 'identity') throw new RequestFault(415, 'The body must not be compressed.')
}

function needsBody(request: FastifyRequest): boolean {
  return request.routeOptions.schema?.body !== undefined
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
