import { Model as AnyModel } from 'objection'

/** `first()` adds `limit 1`; by default Objection fetches all rows. */
export class Model extends AnyModel {
  static override useLimitInFirst = true
}
