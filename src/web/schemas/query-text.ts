import type { FastifyRequest } from 'fastify'

/** A query parameter; undefined: missing, blank or repeated. */
export function queryText(request: FastifyRequest, name: string): string | undefined {
  const value = queryValue(request, name)
  return typeof value === 'string' && value.trim() !== '' ? value : undefined
}

/** All values of a query parameter, as `name` or `name[]`. */
export function queryTexts(request: FastifyRequest, name: string): readonly string[] {
  return [queryValue(request, name), queryValue(request, `${name}[]`)]
    .flat()
    .filter((value) => typeof value === 'string')
}

function queryValue({ query }: FastifyRequest, name: string): unknown {
  return typeof query === 'object' && query !== null ? Reflect.get(query, name) : undefined
}
