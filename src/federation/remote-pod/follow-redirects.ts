import type { AllowPrivate } from '../../networks/private-hosts.js'
import type { GetOptions, RemoteResponse } from '../../services/remote-pod-client.js'
import type { ExchangeDeadline } from './deadline.js'
import type { RemoteLimits } from './limits.js'
import { readResponse } from './read-response.js'
import { RemotePodError } from './remote-pod-error.js'
import type { SendRequest } from './remote-requests.js'
import { parseRequestUrl } from './request-url.js'

interface FollowOptions {
  readonly send: SendRequest
  readonly allowPrivate: AllowPrivate
  readonly limits: RemoteLimits
  /** Called for each answer, redirects included. */
  readonly onResponse?: () => void
}

/** Gets a document over a limited number of redirects. */
export async function getFollowingRedirects(
  { send, allowPrivate, limits, onResponse = () => {} }: FollowOptions,
  start: URL,
  get: GetOptions,
  deadline: ExchangeDeadline,
): Promise<RemoteResponse> {
  const maxRedirects = get.redirects ?? 0
  const headers = { accept: get.accept ?? '*/*', 'accept-encoding': 'identity' }
  let url = start
  for (let redirects = 0; redirects <= maxRedirects; redirects += 1) {
    const response = await send(url, { purpose: 'fetch', method: 'GET', headers }, deadline, (response) =>
      readResponse(url, response, { ...limits, maxBytes: get.maxBytes }),
    )
    onResponse()
    if (!('location' in response)) return response
    url = redirectUrl(url, response.location, get, allowPrivate)
  }
  throw new RemotePodError('too_many_redirects', `${start.host} redirects more than ${maxRedirects} times.`)
}

function redirectUrl(from: URL, location: string, { mustStayOnHost }: GetOptions, allowPrivate: AllowPrivate): URL {
  const to = parseRequestUrl(location, allowPrivate, from)
  if (from.protocol === 'https:' && to.protocol !== 'https:') {
    throw new RemotePodError('not_allowed', `${from.host} redirects from https to plain http.`)
  }
  if (mustStayOnHost === true && to.hostname !== from.hostname) {
    throw new RemotePodError('moved', `${from.host} redirects to ${to.host}.`)
  }
  return to
}
