import { once } from 'node:events'
import { connect, isIP, type LookupFunction, type Socket, type TcpNetConnectOpts } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import type { buildConnector } from 'undici'
import { hasCode, messageOf } from '../../errors/thrown.js'
import { type AllowPrivate, isPrivateHostAllowed } from '../../networks/private-hosts.js'
import { isPublicAddress } from '../../networks/public-address.js'
import type { RemoteLimits } from './limits.js'
import { RemotePodError } from './remote-pod-error.js'
import type { ResolveName } from './resolve-name.js'
import { toRemotePodError } from './system-faults.js'
import { tlsConnector } from './tls-connector.js'

export type Dial = (options: TcpNetConnectOpts) => Socket

export interface ConnectOptions {
  readonly allowPrivate: AllowPrivate
  readonly limits: Pick<RemoteLimits, 'connectMs' | 'connectAttemptMs' | 'tlsSessions' | 'tlsSessionMs'>
  readonly resolve: ResolveName
  /** True while a request to this origin is running. */
  readonly isWanted: (origin: string) => boolean
  readonly dial?: Dial | undefined
  /** Certificate authorities to trust instead of the default ones. */
  readonly ca?: string | undefined
}

/**
 * Connects only to checked addresses, against server-side request forgery and DNS rebinding. Every address of a name must pass.
 * The socket gets exactly these addresses, and its remote address is checked again before a byte is written.
 */
export function checkedConnector(options: ConnectOptions): buildConnector.connector {
  const { limits, dial = connect } = options
  const startTls = tlsConnector(limits, options.ca)

  async function open(target: buildConnector.Options): Promise<Socket> {
    const url = new URL(`${target.protocol}//${target.host ?? target.hostname}`)
    const controller = new AbortController()
    const timer = setTimeout(() => controller.abort(connectTimeout(url, limits.connectMs)), limits.connectMs)
    let tcp: Socket | undefined
    try {
      // undici connects again after an aborted request, although it has nothing to send.
      await setImmediate()
      if (!options.isWanted(url.origin)) throw new RemotePodError('busy', `The request to ${url.host} was cancelled.`)
      const addresses = await resolveChecked(url, target.hostname, controller.signal)
      tcp = dial({
        host: target.hostname,
        port: Number(target.port) || (url.protocol === 'https:' ? 443 : 80),
        lookup: fixedLookup(addresses),
        autoSelectFamily: true,
        autoSelectFamilyAttemptTimeout: limits.connectAttemptMs,
        noDelay: true,
        keepAlive: true,
      })
      return await establish(url, target, tcp, controller.signal)
    } catch (error) {
      tcp?.destroy()
      throw controller.signal.aborted ? controller.signal.reason : error
    } finally {
      clearTimeout(timer)
    }
  }

  async function resolveChecked(url: URL, hostname: string, signal: AbortSignal): Promise<readonly string[]> {
    const addresses = isIP(hostname) === 0 ? await resolve(url, hostname, signal) : [hostname]
    for (const address of addresses) requireAllowedAddress(options.allowPrivate, url, address)
    return addresses
  }

  async function resolve(url: URL, hostname: string, signal: AbortSignal): Promise<readonly string[]> {
    const shouldUseSystem = isPrivateHostAllowed(options.allowPrivate, url)
    let addresses: readonly string[]
    try {
      addresses = await untilAborted(options.resolve(hostname, { shouldUseSystem, signal }), signal)
    } catch (error) {
      throw new RemotePodError('dns', `The name ${hostname} could not be resolved: ${tlsReasonOf(error)}.`, {
        cause: error,
      })
    }
    if (addresses.length === 0) throw new RemotePodError('dns', `The name ${hostname} has no address.`)
    return addresses
  }

  async function establish(
    url: URL,
    target: buildConnector.Options,
    tcp: Socket,
    signal: AbortSignal,
  ): Promise<Socket> {
    tcp.on('error', () => {}) // an error between two listeners must not end the process
    try {
      await once(tcp, 'connect', { signal })
    } catch (error) {
      throw toRemotePodError(error, `Connecting to ${url.host} failed`)
    }
    requireAllowedAddress(options.allowPrivate, url, tcp.remoteAddress)
    if (url.protocol === 'http:') return tcp
    try {
      return await untilAborted(startTls({ hostname: target.hostname, host: url.host }, tcp), signal)
    } catch (error) {
      if (hasCode(error, 'ECONNRESET', 'EPIPE'))
        throw toRemotePodError(error, `${url.host} closed the connection during the TLS handshake`)
      throw new RemotePodError('ssl', `TLS with ${url.host} failed: ${tlsReasonOf(error)}.`, { cause: error })
    }
  }

  return (target, callback) => {
    open(target).then(
      (socket) => callback(null, socket),
      (error: Error) => callback(error, null),
    )
  }
}

/** Throws unless the address may be connected to: only public addresses, over https, and the hosts of the setting. */
export function requireAllowedAddress(allowPrivate: AllowPrivate, url: URL, address: string | undefined): void {
  const isPublic = address !== undefined && isPublicAddress(address)
  if (!isPublic && !isPrivateHostAllowed(allowPrivate, url)) {
    throw new RemotePodError('not_allowed', `${url.host} is not requested: ${address} is not a public address.`)
  }
  if (isPublic && url.protocol === 'http:') {
    throw new RemotePodError(
      'not_allowed',
      `${url.host} is not requested: plain http is not allowed for public addresses.`,
    )
  }
}

/** A lookup that returns the checked addresses, so that a second DNS answer cannot replace them. */
export function fixedLookup(addresses: readonly string[]): LookupFunction {
  const answers = addresses.map((address) => ({ address, family: isIP(address) }))
  return (_name, { all }, callback) => {
    const [first] = answers
    if (all === true) callback(null, answers)
    else callback(null, first?.address ?? '', first?.family ?? 0)
  }
}

function connectTimeout(url: URL, connectMs: number): RemotePodError {
  return new RemotePodError('timeout', `Connecting to ${url.host} took more than ${connectMs / 1000} s.`)
}

/** Rejects on abort. The promise itself cannot be cancelled; its late result is dropped. */
function untilAborted<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    promise.then(resolve, reject)
  })
}

/** The reason of OpenSSL, if there is one: its message contains file names and line numbers. */
export function tlsReasonOf(error: unknown): string {
  const reason = error instanceof Error && 'reason' in error ? error.reason : undefined
  return typeof reason === 'string' ? reason : messageOf(error)
}
