import { request as requestHttp } from 'node:http'
import { request as requestHttps } from 'node:https'
import { TLSSocket } from 'node:tls'

/** Where a test answers instead of the address of the pod. */
export interface OwnRequestOptions {
  readonly via?: { readonly host: string; readonly port: number }
  /** Certificate authorities to trust instead of the default ones. */
  readonly ca?: string | Buffer
  /** Milliseconds until the first bytes of the body. */
  readonly withinMs?: number
}

export interface SelfCheckResponse {
  readonly status: number
  readonly location: string | undefined
  readonly contentType: string
  readonly body: string
  /** Undefined: the request was sent without TLS. */
  readonly certificate: { readonly endsAt: Date; readonly error: string | undefined } | undefined
}

const WITHIN_MS = 10_000
const MAX_BYTES = 64 * 1024

/**
 * Requests an address of this pod as another pod would, through its proxy, and follows no redirect. An invalid certificate is reported
 * with the answer. `until: 'data'`: the answer is complete with its first bytes.
 */
export function requestOwnPod(
  url: URL,
  until: 'end' | 'data',
  { via, ca, withinMs = WITHIN_MS }: OwnRequestOptions = {},
): Promise<SelfCheckResponse> {
  return new Promise((resolve, reject) => {
    const options = {
      host: via?.host ?? url.hostname.replace(/^\[(.*)\]$/, '$1'),
      port: via?.port ?? url.port,
      path: `${url.pathname}${url.search}`,
      headers: { host: url.host, 'user-agent': 'pod-checks' },
      agent: false,
      signal: AbortSignal.timeout(withinMs),
    } as const
    const tls = { ...(ca !== undefined && { ca }), servername: url.hostname, rejectUnauthorized: false }
    const request = url.protocol === 'https:' ? requestHttps({ ...options, ...tls }) : requestHttp(options)
    request.on('error', reject)
    request.on('response', (response) => {
      const { statusCode: status = 0, headers } = response
      const certificate = certificateOf(response.socket)
      let body = ''
      const finish = () => {
        resolve({ status, location: headers.location, contentType: headers['content-type'] ?? '', body, certificate })
        request.destroy()
      }
      response.setEncoding('utf8')
      response.on('data', (text: string) => {
        body += text
        if (until === 'data' || body.length > MAX_BYTES) finish()
      })
      response.on('end', finish)
      response.on('error', reject)
    })
    request.end()
  })
}

function certificateOf(socket: object): SelfCheckResponse['certificate'] {
  if (!(socket instanceof TLSSocket)) return undefined
  const error = socket.authorized ? undefined : String(socket.authorizationError)
  return { endsAt: new Date(socket.getPeerCertificate().valid_to), error }
}
