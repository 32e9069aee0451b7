import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Refusal } from '../../domain/refusals.js'
import { recordWrites } from '../../persistence/database/last-writes.js'
import type { Services } from '../../services/services.js'
import { isReadMethod } from '../limits/write-limit.js'
import { RequestFault } from '../server/request-faults.js'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** A read of this route changes something. */
    writes?: true
  }
}

/**
 * Reads a list from the replica if it includes every change that the viewer has seen, else from the primary. A read that fails on
 * the replica, or finds an object missing there, is repeated on the primary.
 */
export async function readList<List>(
  request: FastifyRequest,
  read: (services: Pick<Services, 'db'>) => Promise<List>,
): Promise<List> {
  const { services } = request.server
  const db = services.replica?.databaseFor(request.viewer.writtenUpTo)
  if (db === undefined) return read(services)
  try {
    return await read({ db })
  } catch (error) {
    if (!(error instanceof Refusal || error instanceof RequestFault)) services.replica?.reportFailure(error)
    return read(services)
  }
}

/** Records the time of writes, so that the user reads no older list afterwards, in any process. */
export function addWriteNotes(app: FastifyInstance): void {
  app.addHook('onSend', (request, _reply, payload, done) => {
    const { authenticatedViewer: viewer, server, method, routeOptions } = request
    const isReadOnly = isReadMethod(method) && routeOptions.config.writes === undefined
    if (viewer === undefined || isReadOnly || server.services.replica === undefined) return done(null, payload)
    recordWrites(server.services.db, [viewer.userId])
      // The write has succeeded, so its response is sent.
      .catch((err: unknown) => request.log.warn({ err }, 'recording a write failed; the user may read an older list'))
      .then(() => done(null, payload), done)
  })
}
