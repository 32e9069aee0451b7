import type { FastifyReply, FastifyRequest } from 'fastify'
import { ANONYMOUS_LOOKUP_LIMITS } from '../../federation/discovery/limits.js'
import type { Lookup } from '../../federation/discovery/lookups.js'
import type { Services } from '../../services/services.js'
import { page } from '../pages/html.js'
import { textsFor } from '../pages/language/request-language.js'
import { html } from '../pages/markup.js'
import { queryText } from '../schemas/query-text.js'
import { HTTP_LIMITS } from '../server/limits.js'
import { pageFault, type RequestFault, tooBusy } from '../server/request-faults.js'
import { openKeyedRateLimit, openRateLimit } from './rate-limit.js'

/**
 * Answers an anonymous request for an object that another pod may have: with the object, with 404, or with a page that reloads
 * itself while the lookup continues.
 */
export type AnswerLookup = <Found>(
  request: FastifyRequest,
  reply: FastifyReply,
  lookUp: Lookup<Found>,
  answers: {
    readonly known: (found: Found) => FastifyReply
    readonly unknown: () => RequestFault
  },
) => Promise<FastifyReply>

/** Limits lookups on other pods per network address and in total. Objects in the database are not limited. */
export function openAnonymousLookups(services: Services): AnswerLookup {
  const { perMinuteOfAddress, perMinuteInTotal, perSeconds, sources, maxWaitingRequests } = ANONYMOUS_LOOKUP_LIMITS
  const now = () => services.now()
  const limitAddress = openRateLimit({
    limit: 'anonymous_look_ups',
    times: perMinuteOfAddress,
    perSeconds,
    sources,
    now,
  })
  const limitAll = openKeyedRateLimit<'all'>({
    limit: 'anonymous_look_ups',
    times: perMinuteInTotal,
    perSeconds,
    sources: 1,
    now,
  })
  let waitingRequests = 0

  return async (request, reply, lookUp, { known, unknown }) => {
    const knownResult = await lookUp.find()
    if (knownResult !== undefined) return known(knownResult)
    if (lookUp.requestFromPod === undefined) throw unknown()
    limitAddress(request.ip) // first: one address must not use up the limit of all
    limitAll('all')
    if (waitingRequests >= maxWaitingRequests) throw tooBusy(HTTP_LIMITS.retryAfterSeconds)
    waitingRequests += 1
    try {
      const lookupResult = await lookUp.requestFromPod()
      if (lookupResult.state === 'found') return known(lookupResult.found)
      if (lookupResult.state === 'unknown') throw unknown()
      return sendPending(request, reply)
    } finally {
      waitingRequests -= 1
    }
  }
}

function sendPending(request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const reloads = Number(queryText(request, 'reload') ?? 0)
  if (!(reloads < ANONYMOUS_LOOKUP_LIMITS.maxReloads)) {
    throw pageFault(503, 'error.no_answer_yet', {
      headers: { 'retry-after': String(ANONYMOUS_LOOKUP_LIMITS.perSeconds) },
    })
  }
  const query = new URLSearchParams({ q: queryText(request, 'q') ?? '', reload: String(reloads + 1) })
  const path = request.routeOptions.url ?? ''
  const seconds = ANONYMOUS_LOOKUP_LIMITS.reloadSeconds
  const t = textsFor(request, reply)
  return reply
    .code(202)
    .header('cache-control', 'no-store')
    .header('retry-after', String(seconds))
    .type('text/html; charset=utf-8')
    .send(
      page({
        t,
        title: t('page.searching'),
        head: html`<meta http-equiv="refresh" content="${seconds}; url=${`${path}?${query}`}">\n`.text,
        content: html`<h1>${t('page.searching')}</h1>
<p>${t('page.searching_about')}</p>
<nav aria-label="${t('common.more_pages')}"><a href="${`${path}?${query}`}">${t('page.reload')}</a><a href="/">${t('common.start_page')}</a></nav>`
          .text,
      }),
    )
}
