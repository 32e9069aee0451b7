import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { LookUp } from '../../federation/discovery/look-up.js'
import { QueueUnavailable } from '../../jobs/queues/queue-unavailable.js'
import { SEARCH_LIMITS } from '../../limits.js'
import { openTurnstile, type Turnstile } from './concurrency-limit.js'

declare module 'fastify' {
  interface FastifyInstance {
    /** Searches that wait for another pod. */
    readonly remoteSearch: Turnstile
  }
}

export function addRemoteSearch(app: FastifyInstance): void {
  const { strangersAtOnce: all, strangersOfUser: each } = SEARCH_LIMITS
  app.decorate('remoteSearch', openTurnstile({ limit: 'searches', all, each }))
}

/** What is known here, or what another pod answers within seconds; undefined also where the viewer has too many searches. */
export async function lookUpForViewer<Found>(
  { server, viewer, log }: FastifyRequest,
  { find, runJob }: LookUp<Found>,
  mayRunJob = true,
): Promise<Found | undefined> {
  let found: Found | undefined = await find()
  if (found !== undefined || runJob === undefined || !mayRunJob) return found
  await server.remoteSearch.passIfRoom(viewer.userId, async () => {
    try {
      const result = await runJob()
      if (result.state === 'found') found = result.found
    } catch (error) {
      if (!(error instanceof QueueUnavailable)) throw error
      log.warn({ err: error }, 'remote look-up skipped: queue unavailable')
    }
  })
  return found
}
