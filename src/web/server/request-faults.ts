/** Found by the HTTP layer itself, before any use case was asked: the request cannot be served as it is. */
export class RequestFault extends Error {
  override name = 'RequestFault'
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  /** What stands in the answer beside code and message. */
  readonly fields: Readonly<Record<string, string>>

  constructor(
    status: number,
    message: string,
    more: { readonly headers?: Record<string, string>; readonly fields?: Record<string, string> } = {},
  ) {
    super(message)
    this.status = status
    this.headers = more.headers ?? {}
    this.fields = more.fields ?? {}
  }
}

/** Nothing is wrong with the request, but too many others are under way. */
export function tooBusy(retryAfterSeconds: number): RequestFault {
  return new RequestFault(503, 'The pod has too much to do at the moment. Please try again soon.', {
    headers: { 'retry-after': String(retryAfterSeconds) },
  })
}

/** The body is not what its media type says, or not an object: 400, or what the route's table says for `malformed`. */
export class MalformedBody extends RequestFault {
  override name = 'MalformedBody'

  constructor(message: string) {
    super(400, message)
  }
}
