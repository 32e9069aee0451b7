import type { FastifyInstance, FastifyRequest } from 'fastify'
import { Refusal } from '../../domain/refusals.js'
import { recordWrites } from '../../persistence/database/last-writes.js'
import type { Pod } from '../../pod/pod.js'
import { isRead } from '../limits/write-limit.js'
import { RequestFault } from '../server/request-faults.js'

declare module 'fastify' {
  interface FastifyContextConfig {
    /** To read it changes something. */
    writes?: true
  }
}

/**
 * Reads a list from the replica, where there is one that shows the viewer everything they know already, else from the primary.
 * What fails there, and what is missing there, is read from the primary as well.
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

/** Whoever has written something reads no list afterwards that is older, from whichever process they ask for it. */
export function addWriteNotes(app: FastifyInstance): void {
  app.addHook('onSend', (request, _reply, payload, done) => {
    const { authenticatedViewer: viewer, server, method, routeOptions } = request
    const onlyReads = isRead(method) && routeOptions.config.writes === undefined
    if (viewer === undefined || onlyReads || server.pod.replica === undefined) return done(null, payload)
    recordWrites(server.pod.db, [viewer.userId])
      // What was done is done, and the answer says so.
      .catch((err: unknown) => request.log.warn({ err }, 'somebody has written and may read a list without it'))
      .then(() => done(null, payload), done)
  })
}
