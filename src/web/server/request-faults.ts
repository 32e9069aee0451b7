import { type ErrorReason, reasonOfStatus } from './error-reasons.js'

interface FaultDetails {
  readonly headers?: Readonly<Record<string, string>>
  /** Members of the error body beside those that every error has. */
  readonly fields?: Readonly<Record<string, string>>
  /** Default: the reason of the status. */
  readonly reason?: ErrorReason
  /** The field or parameter that is wrong. */
  readonly field?: string
}

/** An error of the request that the HTTP layer finds itself. Use cases throw a `Refusal` instead. */
export class RequestFault extends Error {
  override name = 'RequestFault'
  readonly status: number
  readonly reason: ErrorReason
  readonly field: string | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly fields: Readonly<Record<string, string>>

  constructor(status: number, message: string, { headers = {}, fields = {}, reason, field }: FaultDetails = {}) {
    super(message)
    this.status = status
    this.reason = reason ?? reasonOfStatus(status)
    this.field = field
    this.headers = headers
    this.fields = fields
  }
}

/** 503: the request is valid, but the pod is overloaded. */
export function tooBusy(retryAfterSeconds: number): RequestFault {
  return new RequestFault(503, 'The pod has too much to do at the moment. Please try again soon.', {
    headers: { 'retry-after': String(retryAfterSeconds) },
  })
}

/** The body does not match its media type, or is not an object: 400, or the status that the route sets for `malformed`. */
export class MalformedBody extends RequestFault {
  override name = 'MalformedBody'

  constructor(message: string) {
    super(400, message, { reason: 'malformed_body' })
  }
}
