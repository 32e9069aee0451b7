import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Refusal } from '../../domain/refusals.js'
import { recordWrites } from '../../persistence/database/last-writes.js'
import type { Pod } from '../../pod/pod.js'
import { isRead } from '../limits/write-limit.js'
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
  read: (pod: Pick<Pod, 'db'>) => Promise<List>,
): Promise<List> {
  const { pod } = request.server
  const db = pod.replica?.databaseFor(request.viewer.writtenUpTo)
  if (db === undefined) return read(pod)
  try {
    return await read({ db })
  } catch (error) {
    if (!(error instanceof Refusal || error instanceof RequestFault)) pod.replica?.reportFailure(error)
    return read(pod)
  }
}

/** Records the time of writes, so that the user reads no older list afterwards, in any process. */
export function addWriteNotes(app: FastifyInstance): void {
  app.addHook('onSend', (request, _reply, payload, done) => {
    const { authenticatedViewer: viewer, server, method, routeOptions } = request
    const isReadOnly = isRead(method) && routeOptions.config.writes === undefined
    if (viewer === undefined || isReadOnly || server.pod.replica === undefined) return done(null, payload)
    recordWrites(server.pod.db, [viewer.userId])
      // The write has succeeded, so its response is sent.
      .catch((err: unknown) => request.log.warn({ err }, 'recording a write failed; the user may read an older list'))
      .then(() => done(null, payload), done)
  })
}
