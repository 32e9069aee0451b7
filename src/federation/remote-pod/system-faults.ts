import { codeOf } from '../../errors/thrown.js'
import { type RemoteFault, RemotePodError } from './remote-pod-error.js'

/** The faults of Node and undici error codes. All other codes mean an answer that could not be read. */
const FAULT_OF_CODE: Readonly<Record<string, RemoteFault>> = {
  ECONNREFUSED: 'net',
  ECONNRESET: 'net',
  ECONNABORTED: 'net',
  EPIPE: 'net',
  EHOSTUNREACH: 'net',
  EHOSTDOWN: 'net',
  ENETUNREACH: 'net',
  ENETDOWN: 'net',
  EADDRNOTAVAIL: 'net',
  EACCES: 'net',
  EPERM: 'net',
  UND_ERR_SOCKET: 'net',
  ETIMEDOUT: 'timeout',
  UND_ERR_CONNECT_TIMEOUT: 'timeout',
  UND_ERR_HEADERS_TIMEOUT: 'timeout',
  UND_ERR_BODY_TIMEOUT: 'timeout',
  EPROTO: 'ssl',
  EMFILE: 'busy',
  ENFILE: 'busy',
  ENOBUFS: 'busy',
  UND_ERR_CLOSED: 'busy',
  UND_ERR_DESTROYED: 'busy',
}

/** Codes that mean a bug in this program; these errors are not converted. */
const BUG_CODES: ReadonlySet<string> = new Set(['UND_ERR_INVALID_ARG', 'UND_ERR_NOT_SUPPORTED'])

/** Converts an error of Node or undici into a RemotePodError. Errors that mean a bug are returned unchanged. */
export function toRemotePodError(error: unknown, failure: string): unknown {
  if (error instanceof RemotePodError || !(error instanceof Error) || error instanceof TypeError) return error
  const code = codeOf(error)
  if (BUG_CODES.has(code)) return error
  return new RemotePodError(FAULT_OF_CODE[code] ?? 'bad_answer', `${failure}: ${error.message || code}.`, {
    cause: error,
  })
}
