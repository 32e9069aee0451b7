import type { FastifyRequest } from 'fastify'

/** A parameter of the query that stands there once and says something; undefined: it does not. */
export function queryText(request: FastifyRequest, name: string): string | undefined {
  const { query } = request
  const value = typeof query === 'object' && query !== null ? Reflect.get(query, name) : undefined
  return typeof value === 'string' && value.trim() !== '' ? value : undefined
}
