import type { FastifyRequest } from 'fastify'

/**
 * Hooks for a route with a body about an object in its path. A missing object is reported before errors in the body. The object is
 * looked up only if the body is invalid; otherwise the use case finds it itself.
 */
export function reportMissingFirst<Params>(
  find: (request: FastifyRequest & { readonly params: Params }) => Promise<unknown>,
) {
  return {
    attachValidation: true,
    async preHandler(request: FastifyRequest): Promise<void> {
      if (request.validationError === undefined) return
      await find(request as FastifyRequest & { readonly params: Params }) // throws if the object is missing
      throw request.validationError
    },
  }
}

/** Checks the object of a list whose handler reads the query: the object is looked up only if the query is invalid. */
export async function readQueryOfExisting<Query>(read: () => Query, find: () => Promise<unknown>): Promise<Query> {
  try {
    return read()
  } catch (error) {
    await find()
    throw error
  }
}
