/** Why another pod did not do what we asked; what the pods table keeps of it follows from these names. */
export type RemoteFault =
  /** Must not be asked: a private address, a port, a scheme. */
  | 'not_allowed'
  /** Our own limits were in the way; it says nothing about the other pod. */
  | 'busy'
  /** The name has no address. */
  | 'dns'
  /** Refused, out of reach, reset, closed too early. */
  | 'net'
  | 'timeout'
  /** TLS, or a certificate that is not for this host. */
  | 'ssl'
  /** Connected, but what came is not an HTTP answer we can read. */
  | 'bad_answer'
  | 'answer_too_large'
  | 'too_many_redirects'
  /** The answer points to somewhere else, and we do not go there. */
  | 'moved'
  /** Nothing there takes this request. */
  | 'gone'
  | 'refused'
  /** Not now; this concerns the whole pod. */
  | 'overloaded'

/** Whatever a pod answers may be better tomorrow; an address we must not ask stays forbidden. */
const final: ReadonlySet<RemoteFault> = new Set(['not_allowed'])

/** Another pod did not do what we asked. */
export class RemotePodError extends Error {
  override name = 'RemotePodError'
  readonly fault: RemoteFault
  readonly passing: boolean

  constructor(fault: RemoteFault, message: string, options?: ErrorOptions) {
    super(message, options)
    this.fault = fault
    this.passing = !final.has(fault)
  }
}

/** Something failed, whatever it is called by now, because too much was under way here. */
export function isLocalOverload(error: unknown): boolean {
  if (error instanceof RemotePodError) return error.fault === 'busy'
  return error instanceof Error && isLocalOverload(error.cause)
}

/** What only an answer can mean. */
export type AnswerFault = Extract<RemoteFault, 'moved' | 'gone' | 'refused' | 'overloaded'>

/** What the status of an answer means, for a delivery as for a fetch; a good one means nothing. */
export function faultOf(status: number): AnswerFault | undefined {
  if (status >= 200 && status < 300) return undefined
  if (status >= 300 && status < 400) return 'moved'
  if ([404, 405, 410, 501].includes(status)) return 'gone'
  if ([408, 425, 429].includes(status) || status >= 500) return 'overloaded'
  return 'refused'
}
