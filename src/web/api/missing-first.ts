import type { FastifyRequest } from 'fastify'

/**
 * For a route that is given a body about something in its path: whether that is there is told before what is wrong with the
 * body. It is looked for only when something is; else the use case finds it itself.
 */
export function missingFirst<Params>(
  find: (request: FastifyRequest & { readonly params: Params }) => Promise<unknown>,
) {
  return {
    attachValidation: true,
    async preHandler(request: FastifyRequest): Promise<void> {
      if (request.validationError === undefined) return
      await find(request as FastifyRequest & { readonly params: Params }) // a path whose parameters are wrong leads nowhere
      throw request.validationError
    },
  }
}

/** The same for a list, whose handler reads the query: what the list is of is looked for only when the query is wrong. */
export async function readOrMissing<Query>(read: () => Query, find: () => Promise<unknown>): Promise<Query> {
  try {
    return read()
  } catch (error) {
    await find()
    throw error
  }
}
