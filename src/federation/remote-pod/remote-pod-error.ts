/** Why a request to another pod failed. The status in the pods table follows from these names. */
export type RemoteFault =
  /** The URL is forbidden: a private address, a port, a scheme. */
  | 'not_allowed'
  /** The limits of this process were reached. This says nothing about the other pod. */
  | 'busy'
  /** The name has no address. */
  | 'dns'
  /** The connection was refused, reset or closed too early, or the host is unreachable. */
  | 'net'
  | 'timeout'
  /** TLS failed, or the certificate is not for this host. */
  | 'ssl'
  /** The answer is not valid HTTP. */
  | 'bad_answer'
  | 'answer_too_large'
  | 'too_many_redirects'
  /** A redirect that is not followed. */
  | 'moved'
  /** The pod has no such endpoint. */
  | 'gone'
  | 'refused'
  /** The whole pod cannot answer at present. */
  | 'overloaded'

/** All other faults may pass; a forbidden URL stays forbidden. */
const PERMANENT_FAULTS: ReadonlySet<RemoteFault> = new Set(['not_allowed'])

/** A request to another pod has failed. */
export class RemotePodError extends Error {
  override name = 'RemotePodError'
  readonly fault: RemoteFault
  /** A retry may succeed. */
  readonly isTemporary: boolean

  constructor(fault: RemoteFault, message: string, options?: ErrorOptions) {
    super(message, options)
    this.fault = fault
    this.isTemporary = !PERMANENT_FAULTS.has(fault)
  }
}

/** True if the error, or one of its causes, is a limit of this process. */
export function isLocalOverload(error: unknown): boolean {
  if (error instanceof RemotePodError) return error.fault === 'busy'
  return error instanceof Error && isLocalOverload(error.cause)
}

/** The faults that a response can mean. */
export type ResponseFault = Extract<RemoteFault, 'moved' | 'gone' | 'refused' | 'overloaded'>

/** The fault that a status code means, for deliveries and fetches; undefined for 2xx. */
export function faultOfStatus(status: number): ResponseFault | undefined {
  if (status >= 200 && status < 300) return undefined
  if (status >= 300 && status < 400) return 'moved'
  if ([404, 405, 410, 501].includes(status)) return 'gone'
  if ([408, 425, 429].includes(status) || status >= 500) return 'overloaded'
  return 'refused'
}
