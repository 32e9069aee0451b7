import { Model as AnyModel } from 'objection'

/** The first row of a query is asked for alone: the library would have the server send all of them, and take one. */
export class Model extends AnyModel {
  static override useLimitInFirst = true
}
