/** A backup cannot be made, read or restored. The message says why and what to do. */
export class BackupError extends Error {
  override name = 'BackupError'
}

/** The given identities open none of the recipients of a file; or its header was changed. */
export class WrongIdentityError extends BackupError {
  constructor() {
    super('The backup is encrypted for another identity than the given one.')
  }
}

/** Another passphrase than that of the backups. */
export class WrongPassphraseError extends BackupError {
  constructor() {
    super('The passphrase is not that of the backups.')
  }
}

/** The store of the backups does not answer. This is no fault of a backup, and nothing is known about its files. */
export class RepositoryUnavailableError extends Error {
  override name = 'RepositoryUnavailableError'
}
