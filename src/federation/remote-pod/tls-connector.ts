import { once } from 'node:events'
import { isIP, type Socket } from 'node:net'
import { connect, createSecureContext, type TLSSocket } from 'node:tls'
import { ExpiringCache } from './expiring-cache.js'
import type { RemoteLimits } from './limits.js'

interface TlsTarget {
  readonly hostname: string
  /** Host and port. */
  readonly host: string
}

/** Starts TLS on a connected socket. Rejects unless the certificate is valid for the host. */
export type StartTls = (target: TlsTarget, tcp: Socket) => Promise<TLSSocket>

/**
 * All connections share one context, because creating one reads all certificate authorities. The next connection to a host resumes
 * the session of the last one. Both halve the processor time of a connection.
 */
export function tlsConnector(
  limits: Pick<RemoteLimits, 'tlsSessions' | 'tlsSessionMs'>,
  ca: string | undefined,
): StartTls {
  const secureContext = createSecureContext(ca === undefined ? {} : { ca })
  const sessions = new ExpiringCache<Buffer>(limits.tlsSessions)

  return async ({ hostname, host }, tcp) => {
    const socket = connect({
      socket: tcp,
      host: hostname,
      servername: isIP(hostname) === 0 ? hostname : '',
      secureContext,
      session: sessions.get(host),
      rejectUnauthorized: true,
      ALPNProtocols: ['http/1.1'],
    })
    socket.on('error', () => {}) // an error between two listeners must not end the process
    // Node emits this only after it has checked the certificate and its name, which a resumed session skips.
    socket.on('session', (session) => sessions.set(host, session, limits.tlsSessionMs))
    try {
      await once(socket, 'secureConnect')
    } catch (error) {
      sessions.delete(host) // the next attempt is a full handshake
      throw error
    }
    return socket
  }
}
