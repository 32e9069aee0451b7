/** Mails of the pod. */
export const MAIL_LIMITS = {
  /** Seconds until the attempts after a temporary failure; a mail that fails again is a dead letter. */
  retrySeconds: [60, 300, 900, 3_600, 14_400, 43_200],
  /** Seconds between two attempts with one mail while the mail server refuses this pod. */
  probeSeconds: 300,
  /** Days after which a mail that waits for a refusing server is given up. */
  waitingDays: 14,
  /** Days for which kind and time of a mail are kept. */
  listedDays: 30,
  /** Milliseconds until the mail server has accepted the connection. */
  connectMs: 10_000,
  /** Milliseconds without an answer of the mail server within an SMTP conversation. */
  inactiveMs: 20_000,
  /** Permanent faults of a mailbox in `faultDays` after which it gets no more notification mails. */
  maxPermanentFaults: 3,
  /** Older faults are forgotten: a full mailbox is emptied some day. */
  faultDays: 14,
  /** Hours between two mails about the account to a mailbox that seems not to exist. */
  suppressedHours: 24,
  /** Bytes of a message that `pod mail bounce` reads. */
  bounceBytes: 256 * 1024,
  /** Characters of the name of another person in the subject. */
  nameCharacters: 64,
  /** Characters of a public text: enough to recognise it, not to replace the page. */
  excerptCharacters: 300,
  /** Characters of the text that are read for it; more than the excerpt has, because marks and addresses are left out. */
  readCharacters: 2_000,
  /** Seconds between a notification and its mail; a notification that is read in the meantime causes none. */
  notificationMailDelaySeconds: 120,
  /** Notification mails of one user; further ones are in the digest. */
  notificationMailsPerHour: 30,
  /** Notification mails of one user in a day. */
  notificationMailsPerDay: 100,
  /** Lines of a digest; the rest is counted. */
  digestLines: 30,
  /** Mails with a confirmation link to one mailbox. */
  confirmationsPerDay: 5,
  /** Minutes in which a moderator gets one mail about reports. */
  reportMailMinutes: 10,
} as const
