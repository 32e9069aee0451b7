import type { FastifyRequest } from 'fastify'

/** The text of a form field; undefined: missing or empty. */
export function formText({ body }: FastifyRequest, name: string): string | undefined {
  const value = typeof body === 'object' && body !== null ? Reflect.get(body, name) : undefined
  return typeof value === 'string' && value !== '' ? value : undefined
}
