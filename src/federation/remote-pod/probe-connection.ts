import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { connect, isIP, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { messageOf } from '../../errors/thrown.js'
import { isPrivateHostAllowed } from '../../networks/private-hosts.js'
import type { ProbeStep } from '../../persistence/models/remote-pod.js'
import { DAY_MS } from '../../protocol/durations.js'
import { type ConnectOptions, fixedLookup, requireAllowedAddress, tlsReasonOf } from './connect.js'
import { RemotePodError } from './remote-pod-error.js'
import { parseRequestUrl } from './request-url.js'
import { nameResolver, type ResolveName } from './resolve-name.js'

interface ProbeOptions extends Pick<ConnectOptions, 'allowPrivate' | 'dial' | 'ca'> {
  readonly userAgent: string
  readonly resolve?: ResolveName | undefined
}

/** All steps together. */
const PROBE_MS = 10_000
/** Characters shown of a text in a certificate and of an address list. */
const SHOWN_CHARACTERS = 200

/**
 * Connects to a pod step by step, as a request would, and reports each step with its time. The steps end with the first that fails. Names
 * and sessions are not kept, so that each probe sees the current state.
 */
export async function probeConnection(text: string | URL, options: ProbeOptions): Promise<readonly ProbeStep[]> {
  const { allowPrivate, dial = connect, resolve = nameResolver() } = options
  const signal = AbortSignal.timeout(PROBE_MS)
  const steps: ProbeStep[] = []
  const sockets: Socket[] = []
  let certificateEndsAt: Date | undefined
  const setCertificateEnd = (endsAt: Date) => {
    if (!Number.isNaN(endsAt.getTime())) certificateEndsAt = endsAt
  }

  async function run<Value>(step: ProbeStep['step'], work: () => Promise<readonly [Value, string]>): Promise<Value> {
    const began = performance.now()
    const addStep = (ok: boolean, detail: string) => {
      const ms = Math.round(performance.now() - began)
      const ofTls = step === 'tls' &&
        certificateEndsAt !== undefined && { certificateEndsAt: certificateEndsAt.toISOString() }
      steps.push({ step, ok, ms, detail: detail.slice(0, SHOWN_CHARACTERS), ...ofTls })
    }
    try {
      const [value, detail] = await work()
      addStep(true, detail)
      return value
    } catch (error) {
      addStep(false, signal.aborted ? `No answer within ${PROBE_MS / 1_000} s.` : sentenceOf(error))
      throw new StepFailed()
    }
  }

  function readUrl(): URL {
    try {
      return parseRequestUrl(text, allowPrivate)
    } catch (error) {
      steps.push({ step: 'address', ok: false, ms: 0, detail: sentenceOf(error) })
      throw new StepFailed()
    }
  }

  try {
    const url = readUrl()
    const host = url.hostname.replace(/^\[(.*)\]$/, '$1')
    const addresses = await run('dns', async () => {
      const shouldUseSystem = isPrivateHostAllowed(allowPrivate, url)
      const addresses = isIP(host) === 0 ? await resolve(host, { shouldUseSystem, signal }) : [host]
      if (addresses.length === 0) throw new RemotePodError('dns', 'The name has no address.')
      return [addresses, addresses.join(', ')]
    })
    await run('address', async () => {
      for (const address of addresses) requireAllowedAddress(allowPrivate, url, address)
      return [undefined, 'The addresses may be requested.']
    })
    const tcp = await run('tcp', async () => {
      const port = Number(url.port) || (url.protocol === 'https:' ? 443 : 80)
      const socket = dial({ host, port, lookup: fixedLookup(addresses), autoSelectFamily: true })
      sockets.push(socket)
      socket.on('error', () => {}) // an error between two listeners must not end the process
      await once(socket, 'connect', { signal })
      requireAllowedAddress(allowPrivate, url, socket.remoteAddress)
      return [socket, `${socket.remoteAddress}, port ${socket.remotePort}`]
    })
    const socket =
      url.protocol === 'http:'
        ? tcp
        : await run('tls', () => startTls(tcp, { host, ca: options.ca, signal, sockets, setCertificateEnd }))
    await run('http', () => requestFrontPage(url, socket, options.userAgent, signal))
  } catch (error) {
    if (!(error instanceof StepFailed)) throw error
  } finally {
    sockets.at(-1)?.destroy() // with TLS the outer one: without it, the process may crash
  }
  return steps
}

/** The failure is in the steps. */
class StepFailed extends Error {}

async function startTls(
  tcp: Socket,
  {
    host,
    ca,
    signal,
    sockets,
    setCertificateEnd,
  }: {
    readonly host: string
    readonly ca: string | undefined
    readonly signal: AbortSignal
    readonly sockets: Socket[]
    readonly setCertificateEnd: (endsAt: Date) => void
  },
): Promise<readonly [TLSSocket, string]> {
  const socket = connectTls({
    socket: tcp,
    host,
    servername: isIP(host) === 0 ? host : '',
    ALPNProtocols: ['http/1.1'],
    ...(ca !== undefined && { ca }),
    rejectUnauthorized: false, // an invalid certificate is reported with its content; no request follows
  })
  sockets.push(socket)
  socket.on('error', () => {})
  await once(socket, 'secureConnect', { signal })
  const { issuer, valid_to: validTo } = socket.getPeerCertificate()
  const endsAt = new Date(validTo)
  setCertificateEnd(endsAt)
  const days = Math.floor((endsAt.getTime() - Date.now()) / DAY_MS)
  const details = `${socket.getProtocol()}, certificate of ${issuer?.O ?? issuer?.CN ?? 'an unknown authority'}, valid for ${days} days`
  if (!socket.authorized) throw new Error(`${messageOf(socket.authorizationError)} (${details})`)
  return [socket, `${details}.`]
}

async function requestFrontPage(
  url: URL,
  socket: Socket,
  userAgent: string,
  signal: AbortSignal,
): Promise<readonly [undefined, string]> {
  const headers = { host: url.host, accept: 'text/html', 'user-agent': userAgent, connection: 'close' }
  const outgoingRequest = request({ createConnection: () => socket, method: 'GET', path: '/', headers, signal })
  outgoingRequest.on('error', () => {})
  outgoingRequest.end()
  const [response]: IncomingMessage[] = await once(outgoingRequest, 'response', { signal })
  const detail = `Status ${response?.statusCode}, ${response?.headers['content-type'] ?? 'no media type'}.`
  if ((response?.statusCode ?? 500) >= 500) throw new Error(detail)
  return [undefined, detail]
}

function sentenceOf(error: unknown): string {
  const message = tlsReasonOf(error)
  return /[.)]$/.test(message) ? message : `${message}.`
}
