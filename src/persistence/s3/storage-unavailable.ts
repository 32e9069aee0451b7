/** The store of pictures or backups does not answer, or refuses the request. */
export class StorageUnavailable extends Error {
  override name = 'StorageUnavailable'
  /** The method of the request. */
  readonly operation: string
  /** A retry will not succeed: wrong keys, no bucket. */
  readonly isRefused: boolean

  constructor(operation: string, reason: string, isRefused = false, options?: ErrorOptions) {
    super(`The S3 store cannot be used: ${reason}.`, options)
    this.operation = operation
    this.isRefused = isRefused
  }
}
