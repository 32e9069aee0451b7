import type { FastifyInstance, FastifyRequest } from 'fastify'
import { RequestFault } from '../server/request-faults.js'

/** Looks up the object in the path of a request; throws if it is missing. */
export type FindObject = (request: FastifyRequest) => Promise<unknown>

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A missing object is reported before errors in the query or body. */
    findObject?: FindObject | undefined
  }
}

/** The `findObject` of a route with these parameters in its path. */
export function objectFinder<Params>(
  find: (request: FastifyRequest & { readonly params: Params }) => Promise<unknown>,
): FindObject {
  return (request) => find(request as FastifyRequest & { readonly params: Params })
}

/**
 * Reports a missing object of the path before errors in the query or body, those of the schema and those that the handler finds. The
 * object is looked up only if these are invalid; otherwise the use case finds it itself. `finderOf` is for routes without `findObject`.
 */
export function addMissingObjectsFirst(
  app: FastifyInstance,
  finderOf: (path: string) => FindObject | undefined = () => undefined,
): void {
  app.addHook('onRoute', (route) => {
    const find = route.config?.findObject ?? finderOf(route.routePath)
    if (find === undefined) return
    route.config = { ...route.config, findObject: find }
    route.attachValidation = true
    const handle = route.handler
    route.handler = async function handleOrReportMissing(request, reply) {
      try {
        return await handle.call(this, request, reply)
      } catch (error) {
        if (error instanceof RequestFault && error.status === 422) await find(request)
        throw error
      }
    }
  })

  app.addHook('preHandler', async (request) => {
    const { validationError, routeOptions } = request
    const { findObject } = routeOptions.config
    if (validationError === undefined || findObject === undefined) return
    if (validationError.validationContext !== 'params') await findObject(request)
    throw validationError
  })
}
