export type ArchiveFault =
  | 'not_utf8'
  | 'broken_json'
  | 'unknown_version'
  | 'schema'
  | 'key_unusable'
  | 'key_mismatch'
  | 'moved_elsewhere'
  | 'same_account'
  | 'too_large'
  | 'too_many'
  | 'no_space'

/** An archive that cannot be imported as a whole. */
export class ArchiveError extends Error {
  override name = 'ArchiveError'
  readonly fault: ArchiveFault

  constructor(fault: ArchiveFault, message: string, options?: ErrorOptions) {
    super(message, options)
    this.fault = fault
  }
}
