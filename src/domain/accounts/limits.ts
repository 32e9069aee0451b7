/** Registration of clients. */
export const CLIENT_LIMITS = {
  /** The document that lists which redirect addresses belong together. */
  sectorDocumentBytes: 64 * 1024,
} as const

/** Unused accounts, with `INACTIVE_ACCOUNT_DAYS`. */
export const INACTIVITY_LIMITS = {
  /** Days between the warning and the beginning of the closing. */
  warnedDays: 30,
  /** Accounts that one run warns, and that one run begins to close. */
  accountsPerRun: 100,
} as const

/** Local accounts. */
export const ACCOUNT_LIMITS = {
  /** Parsed private keys of local people, each of a few kilobytes. */
  privateKeysCached: 1_000,
  /** Mails with a link to reset the password of one account. */
  resetsPerHour: 3,
  /** The mailbox of another person cannot be filled. */
  resetsPerDay: 6,
  /** Requested resets of one network address and web process in an hour. */
  resetsOfAddress: 10,
  /** Days for which the name of a sign-up is reserved. */
  unconfirmedDays: 3,
  /** Days for which the name of a sign-up is reserved that waits for a moderator. */
  undecidedDays: 30,
  /** Pending sign-ups of one network in a day. */
  signUpsOfNetwork: 5,
  /** Sign-ups that wait, in all: a moderator has to look through them. */
  pendingSignUps: 1_000,
  /** Mails about changes of the e-mail address of one user in a day: to the new address and to the old one. */
  emailChangeMails: 20,
  /** Mails with the link of one sign-up. The minutes between two of them follow. */
  confirmationMails: 5,
  /** A mail may take some minutes to arrive. */
  confirmationMinutes: 5,
  /** The reason that a person gives for a sign-up. */
  reasonCharacters: 500,
  /** Seconds between the form of a sign-up and its sending: a program is faster than a person. */
  minFormSeconds: 3,
  /** The proof of time in the form is valid for a day. */
  maxFormSeconds: 86_400,
  /** Days without a sign-in after which a browser counts as new. */
  knownBrowserDays: 90,
  /** Days for which e-mail address and password of an account stay that has moved to another pod. */
  movedAccountDays: 30,
  /** Days after the sign-up until a user can invite people. */
  invitationsAfterDays: 7,
  /** Bytes of a name or address that is typed to reset a password. */
  typedBytes: 255,
} as const
