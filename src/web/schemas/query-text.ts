import type { FastifyRequest } from 'fastify'

/** A parameter of the query that stands there once and says something; undefined: it does not. */
export function queryText(request: FastifyRequest, name: string): string | undefined {
  const value = queryValue(request, name)
  return typeof value === 'string' && value.trim() !== '' ? value : undefined
}

/** A parameter of the query each time that it stands there, as `name` or as `name[]`. */
export function queryTexts(request: FastifyRequest, name: string): readonly string[] {
  return [queryValue(request, name), queryValue(request, `${name}[]`)]
    .flat()
    .filter((value) => typeof value === 'string')
}

function queryValue({ query }: FastifyRequest, name: string): unknown {
  return typeof query === 'object' && query !== null ? Reflect.get(query, name) : undefined
}
