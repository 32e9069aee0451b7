import type { FastifyRequest } from 'fastify'

/** A field of a form that is there and says something; undefined: it does not. */
export function formText({ body }: FastifyRequest, name: string): string | undefined {
  const value = typeof body === 'object' && body !== null ? Reflect.get(body, name) : undefined
  return typeof value === 'string' && value !== '' ? value : undefined
}
