import { setImmediate } from 'node:timers/promises'
import type { Logger } from 'pino'
import { Agent, type Dispatcher } from 'undici'
import { REMOTE_LIMITS, type RemoteLimits } from '../../limits.js'
import { type AllowPrivate, isPrivateHostAllowed, privateAddressesWarning } from '../../networks/private-hosts.js'
import type { GetOptions, RemoteAnswer, RemotePods } from '../../pod/pod.js'
import { checkedConnector, type Dial } from './connect.js'
import { type Deadline, withDeadline } from './deadline.js'
import { readAnswer, readDeliveryAnswer } from './read-answer.js'
import { type RemoteFault, RemotePodError } from './remote-pod-error.js'
import { openRequestSlots, type Purpose } from './request-slots.js'
import { parseRequestUrl } from './request-url.js'
import { nameResolver, type ResolveName } from './resolve-name.js'
import { toRemotePodError } from './system-faults.js'

export interface RemotePodsOptions {
  readonly allowPrivate: AllowPrivate
  /** `{product}/{version}` */
  readonly userAgent: string
  readonly log: Pick<Logger, 'debug' | 'warn'>
  readonly limits?: Partial<RemoteLimits>
  readonly resolve?: ResolveName
  readonly dial?: Dial
  /** Authorities to trust instead of the usual ones. */
  readonly ca?: string
  /** Milliseconds, for what is counted by the minute. */
  readonly now?: () => number
}

interface Request {
  readonly purpose: Purpose
  readonly method: 'GET' | 'POST'
  readonly headers: Readonly<Record<string, string>>
  readonly body?: string | Buffer
}

/** After these it may help to speak plain http. */
const withoutTls: ReadonlySet<RemoteFault> = new Set(['net', 'ssl', 'timeout'])

export function openRemotePods(options: RemotePodsOptions): RemotePods & { close(): Promise<void> } {
  const { allowPrivate, log } = options
  const limits = { ...REMOTE_LIMITS, ...options.limits }
  const turns = openRequestSlots(limits, options.now ?? (() => performance.now()))
  const wanted = new Map<string, number>()
  const want = (origin: string, more: number) => {
    const count = (wanted.get(origin) ?? 0) + more
    if (count > 0) wanted.set(origin, count)
    else wanted.delete(origin)
  }
  const agent = new Agent({
    connect: checkedConnector({
      ...options,
      limits,
      resolve: options.resolve ?? nameResolver(),
      isWanted: (origin) => wanted.has(origin),
    }),
    pipelining: 1,
    maxHeaderSize: limits.headerBytes,
    // The deadline covers the whole exchange; these would begin anew with every chunk.
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: limits.idleMs,
    keepAliveMaxTimeout: limits.longestIdleMs,
  })
  const warning = privateAddressesWarning(allowPrivate)
  if (warning !== undefined) log.warn(warning)

  /** One request and its answer, with nothing followed. */
  async function exchange<Answer>(
    url: URL,
    { purpose, method, headers, body }: Request,
    deadline: Deadline,
    read: (response: Dispatcher.ResponseData) => Promise<Answer>,
  ): Promise<Answer> {
    // The ports of a host share its turns, or a stranger could multiply them; in a playground every port is a pod.
    const host = isPrivateHostAllowed(allowPrivate, url) ? url.host : url.hostname
    const leave = await deadline.waiting(turns.take(purpose, host, deadline.signal))
    want(url.origin, 1)
    try {
      const response = await agent.request({
        origin: url.origin,
        path: `${url.pathname}${url.search}`,
        method,
        headers: { ...headers, 'user-agent': options.userAgent },
        body: body ?? null,
        signal: deadline.signal,
      })
      log.debug({ pod: url.host, method, status: response.statusCode }, 'asked')
      return await read(response)
    } catch (error) {
      throw toRemotePodError(error, `${url.host} broke off`)
    } finally {
      want(url.origin, -1)
      // undici calls a connection free a moment after its last byte; who comes earlier would open another one.
      await setImmediate()
      leave()
    }
  }

  async function follow(start: URL, get: GetOptions, deadline: Deadline, answered = () => {}): Promise<RemoteAnswer> {
    const most = get.redirects ?? 0
    const headers = { accept: get.accept ?? '*/*', 'accept-encoding': 'identity' }
    let url = start
    for (let followed = 0; followed <= most; followed += 1) {
      const answer = await exchange(url, { purpose: 'fetch', method: 'GET', headers }, deadline, (response) =>
        readAnswer(url, response, { ...limits, maxBytes: get.maxBytes }),
      )
      answered()
      if (!('location' in answer)) return answer
      url = nextHop(url, answer.location, get)
    }
    throw new RemotePodError('too_many_redirects', `${start.host} redirects more than ${most} times.`)
  }

  function nextHop(from: URL, location: string, { sameHost }: GetOptions): URL {
    const to = parseRequestUrl(location, allowPrivate, from)
    if (from.protocol === 'https:' && to.protocol !== 'https:') {
      throw new RemotePodError('not_allowed', `${from.host} redirects from https to plain http.`)
    }
    if (sameHost === true && to.hostname !== from.hostname) {
      throw new RemotePodError('moved', `${from.host} redirects to ${to.host}.`)
    }
    return to
  }

  async function followPlain(
    https: URL,
    get: GetOptions,
    deadline: Deadline,
    why: RemotePodError,
  ): Promise<RemoteAnswer> {
    const http = new URL(https)
    http.protocol = 'http:'
    let wasAnswered = false
    const answered = () => {
      wasAnswered = true
    }
    try {
      return await follow(parseRequestUrl(http, allowPrivate), get, deadline, answered)
    } catch (error) {
      // Where plain http is not open, nobody wants to hear that; where it leads to is another matter.
      const isClosed = !wasAnswered && error instanceof RemotePodError && error.fault === 'not_allowed'
      throw isClosed ? why : error
    }
  }

  return {
    get: (text, get) =>
      withDeadline(get.deadline ?? limits.exchangeMs, get.signal, async (deadline) => {
        const url = parseRequestUrl(text, allowPrivate)
        try {
          return await follow(url, get, deadline)
        } catch (error) {
          const helps = error instanceof RemotePodError && withoutTls.has(error.fault) && !deadline.signal.aborted
          if (get.orPlain !== true || url.protocol !== 'https:' || !helps) throw error
          return await followPlain(url, get, deadline, error)
        }
      }),

    post: (text, contentType, body, ask = {}) =>
      withDeadline(ask.deadline ?? limits.exchangeMs, ask.signal, async (deadline) => {
        const url = parseRequestUrl(text, allowPrivate)
        const headers = { 'content-type': contentType }
        return exchange(url, { purpose: 'delivery', method: 'POST', headers, body }, deadline, (response) =>
          readDeliveryAnswer(response, limits),
        )
      }),

    /** Ends what is under way as `busy`. */
    close: () => agent.destroy(new RemotePodError('busy', 'This process is about to end.')),
  }
}
