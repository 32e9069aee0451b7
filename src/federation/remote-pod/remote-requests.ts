import { setImmediate } from 'node:timers/promises'
import type { Logger } from 'pino'
import { Agent, type Dispatcher } from 'undici'
import { codeOf } from '../../errors/thrown.js'
import { type AllowPrivate, isPrivateHostAllowed } from '../../networks/private-hosts.js'
import { checkedConnector, type Dial } from './connect.js'
import type { ExchangeDeadline } from './deadline.js'
import { ExpiringCache } from './expiring-cache.js'
import { REMOTE_LIMITS, type RemoteLimits } from './limits.js'
import { openRemoteClock, type RemoteClock } from './remote-clock.js'
import { RemotePodError } from './remote-pod-error.js'
import { openRequestSlots, type Purpose } from './request-slots.js'
import { nameResolver, type ResolveName } from './resolve-name.js'
import { toRemotePodError } from './system-faults.js'

export interface RemoteRequestOptions {
  readonly allowPrivate: AllowPrivate
  /** `{product}/{version}` */
  readonly userAgent: string
  readonly log: Pick<Logger, 'debug'>
  readonly limits: RemoteLimits
  readonly resolve?: ResolveName
  readonly dial?: Dial
  /** Certificate authorities to trust instead of the default ones. */
  readonly ca?: string
  /** Milliseconds of a clock, for the limits per minute. */
  readonly now?: () => number
}

interface RemoteRequest {
  readonly purpose: Purpose
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Buffer
}

/** Sends one request within the limits per host and follows no redirect. `read` must read or discard the body. */
export type SendRequest = <Answer>(
  url: URL,
  request: RemoteRequest,
  deadline: ExchangeDeadline,
  read: (response: Dispatcher.ResponseData) => Promise<Answer>,
) => Promise<Answer>

/** Error codes of a connection that the other pod has closed. */
const CLOSED: ReadonlySet<string> = new Set(['UND_ERR_SOCKET', 'ECONNRESET', 'EPIPE'])

/** The connections and request slots of this process. */
export function openRemoteRequests(options: RemoteRequestOptions): {
  send: SendRequest
  clock: RemoteClock
  close(): Promise<void>
} {
  const { allowPrivate, limits, log, userAgent } = options
  const clock = openRemoteClock()
  const slots = openRequestSlots(limits, options.now ?? (() => performance.now()))
  const pending = openPendingOrigins()
  const agent = new Agent({
    connect: checkedConnector({
      ...options,
      resolve: options.resolve ?? nameResolver(),
      isWanted: pending.has,
    }),
    pipelining: 1,
    maxHeaderSize: limits.headerBytes,
    // The deadline covers the whole exchange; these timeouts would start again with every chunk.
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: limits.idleMs,
    keepAliveMaxTimeout: limits.maxIdleMs,
  })

  /** Origins that have answered while a connection from then may be open. */
  const answered = new ExpiringCache<true>(REMOTE_LIMITS.dnsNames)

  /** Other pods close idle connections, sometimes just as a request is sent. If that may be the cause, the request is repeated once. */
  async function requestOnOpenConnection(
    origin: string,
    request: Dispatcher.RequestOptions,
  ): Promise<Dispatcher.ResponseData> {
    const mayBeOpen = answered.get(origin) === true
    const response = await agent.request(request).catch((error: unknown) => {
      if (!mayBeOpen || !CLOSED.has(codeOf(error))) throw error
      return agent.request(request)
    })
    answered.set(origin, true, limits.maxIdleMs)
    return response
  }

  const send: SendRequest = async (url, { purpose, method, headers, body }, deadline, read) => {
    // The ports of a host share its slots, so that an attacker cannot multiply them. An allowed private host may have a pod on
    // each port.
    const host = isPrivateHostAllowed(allowPrivate, url) ? url.host : url.hostname
    const releaseSlot = await deadline.exclude(slots.acquire(purpose, host, deadline.signal))
    pending.add(url.origin)
    try {
      const response = await requestOnOpenConnection(url.origin, {
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method,
        headers: { ...headers, 'user-agent': userAgent },
        body: body ?? null,
        signal: deadline.signal,
      })
      log.debug({ pod: url.host, method, status: response.statusCode }, 'request to a pod answered')
      clock.note(response.headers['date'])
      return await read(response)
    } catch (error) {
      throw toRemotePodError(error, `${url.host} broke off`)
    } finally {
      pending.remove(url.origin)
      // undici marks a connection as free one tick after its last byte; an earlier request would open another connection.
      await setImmediate()
      releaseSlot()
    }
  }

  return {
    send,
    clock,
    /** Running requests fail as `busy`. */
    close: () => agent.destroy(new RemotePodError('busy', 'This process is about to end.')),
  }
}

/** Counts running requests by origin. */
function openPendingOrigins() {
  const counts = new Map<string, number>()
  return {
    has: (origin: string) => counts.has(origin),
    add: (origin: string) => void counts.set(origin, (counts.get(origin) ?? 0) + 1),
    remove(origin: string) {
      const count = (counts.get(origin) ?? 0) - 1
      if (count > 0) counts.set(origin, count)
      else counts.delete(origin)
    },
  }
}
