/** A request that the pod understood and refuses. The route decides the HTTP status. */
export class Refusal<Reason extends string = string> extends Error {
  override name = 'Refusal'
  readonly reason: Reason

  constructor(reason: Reason, message: string, options?: ErrorOptions) {
    super(message, options)
    this.reason = reason
  }
}
