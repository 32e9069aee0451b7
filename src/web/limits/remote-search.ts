import type { FastifyInstance, FastifyRequest } from 'fastify'
import { SEARCH_LIMITS } from '../../domain/people/limits.js'
import type { Lookup } from '../../federation/discovery/lookups.js'
import { QueueUnavailable } from '../../jobs/queues/queue-unavailable.js'
import { type ConcurrencyLimit, openConcurrencyLimit } from './concurrency-limit.js'

declare module 'fastify' {
  interface FastifyInstance {
    /** Limits searches that wait for another pod. */
    readonly remoteSearch: ConcurrencyLimit
  }
}

export function addRemoteSearch(app: FastifyInstance): void {
  const { maxConcurrentRemoteLookups: total, maxConcurrentRemoteLookupsOfUser: perKey } = SEARCH_LIMITS
  app.decorate('remoteSearch', openConcurrencyLimit({ limit: 'searches', total, perKey }))
}

/** Finds an object in the database, or on another pod within seconds. The viewer's other searches may make it skip the other pod. */
export async function lookUpForViewer<Found>(
  { server, viewer, log }: FastifyRequest,
  { find, requestFromPod }: Lookup<Found>,
  mayRunJob = true,
): Promise<Found | undefined> {
  let found: Found | undefined = await find()
  if (found !== undefined || requestFromPod === undefined || !mayRunJob) return found
  await server.remoteSearch.runIfFree(viewer.userId, async () => {
    try {
      const lookupResult = await requestFromPod()
      if (lookupResult.state === 'found') found = lookupResult.found
    } catch (error) {
      if (!(error instanceof QueueUnavailable)) throw error
      log.warn({ err: error }, 'remote lookup skipped: queue unavailable')
    }
  })
  return found
}
