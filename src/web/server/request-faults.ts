import { inEnglish } from '../../languages/locales.js'
import type { MessageId, Translate } from '../../languages/translate.js'
import { type ErrorReason, reasonOfStatus } from './error-reasons.js'

interface FaultDetails {
  readonly headers?: Readonly<Record<string, string>>
  /** Additional members of the error body. */
  readonly fields?: Readonly<Record<string, string>>
  /** Default: the reason of the status. */
  readonly reason?: ErrorReason
  /** The field or parameter that is wrong. */
  readonly field?: string
  /** The message in the language of a page; default: that of the status. */
  readonly text?: (t: Translate) => string
}

/** An error of the request that the HTTP layer finds itself. Use cases throw a `Refusal` instead. */
export class RequestFault extends Error {
  override name = 'RequestFault'
  readonly status: number
  readonly reason: ErrorReason
  readonly field: string | undefined
  readonly headers: Readonly<Record<string, string>>
  readonly fields: Readonly<Record<string, string>>
  readonly text: ((t: Translate) => string) | undefined

  constructor(status: number, message: string, { headers = {}, fields = {}, reason, field, text }: FaultDetails = {}) {
    super(message)
    this.status = status
    this.reason = reason ?? reasonOfStatus(status)
    this.field = field
    this.headers = headers
    this.fields = fields
    this.text = text
  }
}

/** The messages of faults, which have no arguments. */
type FaultText = Exclude<Extract<MessageId, `error.${string}`>, 'error.too_many' | 'error.too_many_minutes'>

/** An error of a page, with a message in every language. */
export function pageFault(status: number, id: FaultText, details: Omit<FaultDetails, 'text'> = {}): RequestFault {
  return new RequestFault(status, inEnglish(id), { ...details, text: (t) => t(id) })
}

/** 503: the request is valid, but the pod is overloaded. */
export function tooBusy(retryAfterSeconds: number): RequestFault {
  return pageFault(503, 'error.busy', {
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
