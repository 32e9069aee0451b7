import { once } from 'node:events'
import { connect, isIP, type LookupFunction, type Socket, type TcpNetConnectOpts } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { buildConnector } from 'undici'
import { hasCode, messageOf } from '../../errors/thrown.js'
import type { RemoteLimits } from '../../limits.js'
import { type AllowPrivate, isPrivateHostAllowed } from '../../networks/private-hosts.js'
import { isPublicAddress } from '../../networks/public-address.js'
import { RemotePodError } from './remote-pod-error.js'
import type { ResolveName } from './resolve-name.js'
import { toRemotePodError } from './system-faults.js'

export type Dial = (options: TcpNetConnectOpts) => Socket

export interface ConnectOptions {
  readonly allowPrivate: AllowPrivate
  readonly limits: Pick<RemoteLimits, 'connectMs' | 'connectAttemptMs'>
  readonly resolve: ResolveName
  /** Is a request to this origin under way? */
  readonly isWanted: (origin: string) => boolean
  readonly dial?: Dial | undefined
  /** Authorities to trust instead of the usual ones. */
  readonly ca?: string | undefined
}

/**
 * Connects to addresses that were checked, and to nothing else: every address of a name must pass, the socket gets these very
 * addresses, and where it arrived is checked once more before a byte is written.
 */
export function checkedConnector(options: ConnectOptions): buildConnector.connector {
  const { limits, dial = connect } = options
  const secure = buildConnector({
    rejectUnauthorized: true,
    allowH2: false,
    timeout: 0, // ours covers the handshake
    ...(options.ca === undefined ? {} : { ca: options.ca }),
  })

  async function open(target: buildConnector.Options): Promise<Socket> {
    const url = new URL(`${target.protocol}//${target.host ?? target.hostname}`)
    const controller = new AbortController()
    const timer = setTimeout(() => controller.abort(tooSlow(url, limits.connectMs)), limits.connectMs)
    let tcp: Socket | undefined
    try {
      // undici connects once more for a request that was cut off, and then has nothing to send.
      await setImmediate()
      if (!options.isWanted(url.origin)) throw new RemotePodError('busy', `Nobody waits for ${url.host} any more.`)
      const addresses = await resolveChecked(url, target.hostname, controller.signal)
      tcp = dial({
        host: target.hostname,
        port: Number(target.port) || (url.protocol === 'https:' ? 443 : 80),
        lookup: answerWith(addresses),
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
    for (const address of addresses) checkAddress(url, address)
    return addresses
  }

  async function resolve(url: URL, hostname: string, signal: AbortSignal): Promise<readonly string[]> {
    const bySystem = isPrivateHostAllowed(options.allowPrivate, url)
    let addresses: readonly string[]
    try {
      addresses = await untilAborted(options.resolve(hostname, { bySystem, signal }), signal)
    } catch (error) {
      throw new RemotePodError('dns', `The name ${hostname} could not be resolved: ${textOf(error)}.`, { cause: error })
    }
    if (addresses.length === 0) throw new RemotePodError('dns', `The name ${hostname} has no address.`)
    return addresses
  }

  function checkAddress(url: URL, address: string | undefined): void {
    const isPublic = address !== undefined && isPublicAddress(address)
    if (!isPublic && !isPrivateHostAllowed(options.allowPrivate, url)) {
      throw new RemotePodError('not_allowed', `${url.host} is not asked: ${address} is not a public address.`)
    }
    if (isPublic && url.protocol === 'http:') {
      throw new RemotePodError('not_allowed', `${url.host} is not asked: plain http is not for public addresses.`)
    }
  }

  async function establish(
    url: URL,
    target: buildConnector.Options,
    tcp: Socket,
    signal: AbortSignal,
  ): Promise<Socket> {
    tcp.on('error', () => {}) // between two listeners an error must not end the process
    try {
      await once(tcp, 'connect', { signal })
    } catch (error) {
      throw toRemotePodError(error, `${url.host} could not be connected`)
    }
    checkAddress(url, tcp.remoteAddress)
    if (url.protocol === 'http:') return tcp
    try {
      return await untilAborted(secured(target, tcp), signal)
    } catch (error) {
      if (hasCode(error, 'ECONNRESET', 'EPIPE'))
        throw toRemotePodError(error, `${url.host} closed the connection before TLS was ready`)
      throw new RemotePodError('ssl', `${url.host} has no TLS that we can trust: ${textOf(error)}.`, { cause: error })
    }
  }

  function secured(target: buildConnector.Options, tcp: Socket): Promise<Socket> {
    return new Promise((resolve, reject) =>
      secure({ ...target, httpSocket: tcp }, (error, socket) => (error === null ? resolve(socket) : reject(error))),
    )
  }

  return (target, callback) => {
    open(target).then(
      (socket) => callback(null, socket),
      (error: Error) => callback(error, null),
    )
  }
}

/** Gives the socket what was checked, so that no second answer can be another one. */
function answerWith(addresses: readonly string[]): LookupFunction {
  const answers = addresses.map((address) => ({ address, family: isIP(address) }))
  return (_name, { all }, callback) => {
    const [first] = answers
    if (all === true) callback(null, answers)
    else callback(null, first?.address ?? '', first?.family ?? 0)
  }
}

function tooSlow(url: URL, connectMs: number): RemotePodError {
  return new RemotePodError('timeout', `${url.host} could not be connected within ${connectMs / 1000} s.`)
}

/** For what cannot be cancelled: its answer comes too late and is forgotten. */
function untilAborted<Value>(promise: Promise<Value>, signal: AbortSignal): Promise<Value> {
  return new Promise((resolve, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    promise.then(resolve, reject)
  })
}

/** OpenSSL puts its reason beside a message of file names and line numbers. */
function textOf(error: unknown): string {
  const reason = error instanceof Error && 'reason' in error ? error.reason : undefined
  return typeof reason === 'string' ? reason : messageOf(error)
}
