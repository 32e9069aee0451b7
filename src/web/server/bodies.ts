import formbody from '@fastify/formbody'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { readForm } from './form-body.js'
import { MalformedBody, RequestFault } from './request-faults.js'

const MEDIA_TYPE = /^[\w!#$&^.+-]+\/[\w!#$&^.+-]+[\t ]*(?:;|$)/
const UNKNOWN = 'application/octet-stream'

/**
 * Reads what the API takes: JSON objects and forms, an empty body as an empty object. Any other media type is refused where
 * a body is needed, and passed over where none is: a client that labels nothing as text must still be able to block.
 */
export async function addBodyReaders(app: FastifyInstance): Promise<void> {
  // A name like __proto__ is unknown to every schema, and unknown fields are passed over.
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

  app.addHook('onRequest', refusePacked)
  app.addHook('onRequest', (request, _reply, done) => {
    // What cannot be read would be refused before any parser is asked.
    const type = request.headers['content-type']
    if (type !== undefined && !MEDIA_TYPE.test(type) && !needsBody(request))
      request.raw.headers['content-type'] = UNKNOWN
    done()
  })
  app.addHook('preValidation', async (request) => {
    if (request.body === undefined && needsBody(request)) request.body = {}
  })
}

/** Nothing is unpacked here: a few kilobytes could become gigabytes. */
export async function refusePacked({ headers }: FastifyRequest): Promise<void> {
  const encoding = headers['content-encoding'] ?? 'identity'
  if (encoding.toLowerCase() !== 'identity') throw new RequestFault(415, 'The body must not be compressed.')
}

function needsBody(request: FastifyRequest): boolean {
  return request.routeOptions.schema?.body !== undefined
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
