import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Type } from 'typebox'
import { isReadMethod } from '../limits/write-limit.js'
import { addVary } from './headers.js'

/**
 * Gives each successful read of the API a weak ETag, and answers 304 without a body if the client has this version. The tag
 * covers the `Link` header: a page may get a next one while its items stay the same.
 *
 * Responses stay `no-store`, so that no browser caches private ones: a client keeps the tag and the content by itself.
 * Register it before compression: the tag is weak because all encodings share it.
 */
export function addEntityTags(app: FastifyInstance): void {
  app.addHook('onRoute', (route) => {
    if (route.method !== 'GET' || route.schema?.response === undefined || route.config?.lasting) return
    route.schema = { ...route.schema, response: { ...route.schema.response, 304: NotModified } }
  })
  app.addHook('onSend', (request, reply, payload, done) => {
    if (!isReadMethod(request.method) || reply.statusCode !== 200 || typeof payload !== 'string')
      return done(null, payload)
    const links = String(reply.getHeader('link') ?? '')
    const etag = String(reply.getHeader('etag') ?? buildWeakTag(payload, links))
    reply.header('etag', etag)
    addVary(reply, 'Authorization')
    if (!isNotModified(request, etag)) return done(null, payload)
    reply.code(304).removeHeader('content-type').removeHeader('content-length')
    // Fastify gives an empty HEAD response a `content-length` of 0, except for a stream.
    done(null, request.method === 'HEAD' ? Readable.from([]) : null)
  })
}

const NotModified = Type.Null({ description: 'The client has this version: its `If-None-Match` names the `ETag`.' })

/** Whether the client has the representation with this tag already (RFC 9110, 13.1.2; the comparison is weak). */
export function isNotModified({ headers }: FastifyRequest, etag: string): boolean {
  const knownTags = headers['if-none-match']
  if (knownTags === undefined) return false
  return namesTag(knownTags, etag)
}

/** Whether a header with entity tags names this one, or any. All tags of the API are weak, so `If-Match` compares like the others. */
export function namesTag(header: string, etag: string): boolean {
  return header.trim() === '*' || (header.match(ENTITY_TAG) ?? []).some((tag) => opaqueTagOf(tag) === opaqueTagOf(etag))
}

const ENTITY_TAG = /(?:W\/)?"[^"]*"/g

function opaqueTagOf(tag: string): string {
  return tag.replace(/^W\//, '')
}

export function buildWeakTag(payload: string, links = ''): string {
  const hash = createHash('sha256').update(payload).update('\n').update(links).digest('base64url')
  return `W/"${hash.slice(0, 22)}"`
}
