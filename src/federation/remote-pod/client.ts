import type { Logger } from 'pino'
import { privateAddressesWarning } from '../../networks/private-hosts.js'
import type { GetOptions, RemotePodClient, RemoteResponse } from '../../services/remote-pod-client.js'
import { type ExchangeDeadline, withExchangeDeadline } from './deadline.js'
import { getFollowingRedirects } from './follow-redirects.js'
import { REMOTE_LIMITS, type RemoteLimits } from './limits.js'
import { probeConnection } from './probe-connection.js'
import { readDeliveryResponse } from './read-response.js'
import { type RemoteFault, RemotePodError } from './remote-pod-error.js'
import { openRemoteRequests, type RemoteRequestOptions } from './remote-requests.js'
import { parseRequestUrl } from './request-url.js'

export interface RemotePodClientOptions extends Omit<RemoteRequestOptions, 'limits' | 'log'> {
  readonly log: Pick<Logger, 'debug' | 'warn'>
  readonly limits?: Partial<RemoteLimits>
}

/** Faults of https after which a request over plain http may succeed. */
const FAULTS_WORTH_PLAIN_HTTP: ReadonlySet<RemoteFault> = new Set(['net', 'ssl', 'timeout'])

/** The client for all requests to other pods: only to public addresses, with a deadline, limits per host, and bounded bodies. */
export function openRemotePodClient(options: RemotePodClientOptions): RemotePodClient & { close(): Promise<void> } {
  const { allowPrivate, log } = options
  const limits = { ...REMOTE_LIMITS, ...options.limits }
  const { send, clock, close } = openRemoteRequests({ ...options, limits })
  const following = { send, allowPrivate, limits }
  const warning = privateAddressesWarning(allowPrivate)
  if (warning !== undefined) log.warn(warning)

  async function getPlain(
    https: URL,
    get: GetOptions,
    deadline: ExchangeDeadline,
    httpsError: RemotePodError,
  ): Promise<RemoteResponse> {
    const http = new URL(https)
    http.protocol = 'http:'
    let hasResponse = false
    const onResponse = () => {
      hasResponse = true
    }
    try {
      const url = parseRequestUrl(http, allowPrivate)
      return await getFollowingRedirects({ ...following, onResponse }, url, get, deadline)
    } catch (error) {
      // If plain http is not allowed at all, the error of https is the useful one. After a redirect the new error is.
      const isForbidden = !hasResponse && error instanceof RemotePodError && error.fault === 'not_allowed'
      throw isForbidden ? httpsError : error
    }
  }

  return {
    get: (text, get) =>
      withExchangeDeadline(get.deadline ?? limits.exchangeMs, get.signal, async (deadline) => {
        const url = parseRequestUrl(text, allowPrivate)
        try {
          return await getFollowingRedirects(following, url, get, deadline)
        } catch (error) {
          const mayTryPlain =
            get.mayUsePlain === true &&
            url.protocol === 'https:' &&
            error instanceof RemotePodError &&
            FAULTS_WORTH_PLAIN_HTTP.has(error.fault) &&
            !deadline.signal.aborted
          if (!mayTryPlain) throw error
          return await getPlain(url, get, deadline, error)
        }
      }),

    post: (text, contentType, body, post = {}) =>
      withExchangeDeadline(post.deadline ?? limits.exchangeMs, post.signal, async (deadline) => {
        const url = parseRequestUrl(text, allowPrivate)
        const headers = { 'content-type': contentType }
        return send(url, { purpose: 'delivery', method: 'POST', headers, body }, deadline, (response) =>
          readDeliveryResponse(response, limits),
        )
      }),

    probe: (url) => probeConnection(url, options),

    readClock: clock.read,

    close,
  }
}
