import type { RefusalReason } from './refusal-reasons.js'

/** A request that the pod understood and refuses. The route decides the HTTP status. */
export class Refusal extends Error {
  override name = 'Refusal'
  readonly reason: RefusalReason
  /** More members of the error body, for example what an unconfirmed action would change. */
  readonly details: Readonly<Record<string, unknown>>

  constructor(
    reason: RefusalReason,
    message: string,
    { details = {}, ...options }: ErrorOptions & { readonly details?: Readonly<Record<string, unknown>> } = {},
  ) {
    super(message, options)
    this.reason = reason
    this.details = details
  }
}
