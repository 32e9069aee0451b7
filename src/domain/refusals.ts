/** A request the pod understood and turned down. The route decides which status that becomes. */
export class Refusal<Reason extends string = string> extends Error {
  override name = 'Refusal'
  readonly reason: Reason

  constructor(reason: Reason, message: string, options?: ErrorOptions) {
    super(message, options)
    this.reason = reason
  }
}
