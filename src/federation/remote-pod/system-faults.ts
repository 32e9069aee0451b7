import { codeOf } from '../../errors/thrown.js'
import { type RemoteFault, RemotePodError } from './remote-pod-error.js'

/** What the codes of Node and undici mean; whatever else they say is about an answer that could not be read. */
const faults: Readonly<Record<string, RemoteFault>> = {
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

/** Only a mistake of ours makes undici say these; they stay what they are. */
const mistakes: ReadonlySet<string> = new Set(['UND_ERR_INVALID_ARG', 'UND_ERR_NOT_SUPPORTED'])

/** RequestSlots what Node and undici throw into the fault of a pod; a mistake of our own is handed back as it is. */
export function toRemotePodError(error: unknown, what: string): unknown {
  if (error instanceof RemotePodError || !(error instanceof Error) || error instanceof TypeError) return error
  const code = codeOf(error)
  if (mistakes.has(code)) return error
  return new RemotePodError(faults[code] ?? 'bad_answer', `${what}: ${error.message || code}.`, { cause: error })
}
