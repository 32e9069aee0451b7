import type { AllowPrivate } from '../../networks/private-hosts.js'
import type { GetOptions, RemoteAnswer } from '../../pod/pod.js'
import type { Deadline } from './deadline.js'
import type { RemoteLimits } from './limits.js'
import { readAnswer } from './read-answer.js'
import { RemotePodError } from './remote-pod-error.js'
import type { SendRequest } from './remote-requests.js'
import { parseRequestUrl } from './request-url.js'

interface FollowOptions {
  readonly send: SendRequest
  readonly allowPrivate: AllowPrivate
  readonly limits: RemoteLimits
}

/** Gets a document over a limited number of redirects. `onAnswer` is called for each answer, redirects included. */
export async function getFollowingRedirects(
  { send, allowPrivate, limits }: FollowOptions,
  start: URL,
  get: GetOptions,
  deadline: Deadline,
  onAnswer = () => {},
): Promise<RemoteAnswer> {
  const maxRedirects = get.redirects ?? 0
  const headers = { accept: get.accept ?? '*/*', 'accept-encoding': 'identity' }
  let url = start
  for (let followed = 0; followed <= maxRedirects; followed += 1) {
    const answer = await send(url, { purpose: 'fetch', method: 'GET', headers }, deadline, (response) =>
      readAnswer(url, response, { ...limits, maxBytes: get.maxBytes }),
    )
    onAnswer()
    if (!('location' in answer)) return answer
    url = redirectUrl(url, answer.location, get, allowPrivate)
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
