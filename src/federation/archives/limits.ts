/** Imports of archives. The settings IMPORT_BYTES and IMPORT_PHOTO_BYTES limit their files. */
export const IMPORT_LIMITS = {
  /** Bytes of the JSON of an archive. */
  expandedBytes: 4 * 1024 ** 3,
  /** Bytes of JSON for each byte of the compressed file; real archives reach 20. */
  expansionRatio: 200,
  /** Bytes of JSON up to which the ratio does not count. */
  ratioFromBytes: 16 * 1024 ** 2,
  /** Fifty a day for ten years. */
  posts: 200_000,
  /** Each unknown one is looked up at its pod. */
  contacts: 20_000,
  /** Aspects of an archive, and of the account after its import. Nobody has hundreds. */
  aspects: 1_000,
  /** Followed tags, blocks, hidden posts and muted posts, of each. */
  marks: 200_000,
  /** Refused items of one section and reason that are listed one by one, unless they are tried again. */
  listedRefusals: 1_000,
  /** Characters of the settings of an archive, as JSON. Those of this software have a few hundred, and the names of aspects. */
  settingsCharacters: 65_536,
  /** All items of an archive. */
  items: 2_000_000,
  /** Items that one transaction stores. */
  batchItems: 500,
  /** Characters of the items of one transaction. */
  batchCharacters: 4 * 1024 ** 2,
  /** Milliseconds between two lookups at one host, by all imports together. */
  lookupIntervalMs: 500,
  /** Milliseconds between two fetches of entities from one host. */
  fetchIntervalMs: 1_000,
  /** Milliseconds for the lookups of a batch. Five hundred people of a slow pod take two minutes. */
  lookupsOfBatchMs: 5 * 60 * 1_000,
  /** Milliseconds for the fetches of a batch: at one host they take eight minutes and more. */
  fetchesOfBatchMs: 15 * 60 * 1_000,
  /** Milliseconds for all lookups of a check, which others wait for. */
  lookupsOfCheckMs: 20 * 60 * 1_000,
  /** Milliseconds after which an import lets others run that wait, at the end of its batch. */
  turnMs: 60 * 1_000,
  /** Milliseconds after which trying items again ends; the rest is tried the next time. */
  retryMs: 30 * 60 * 1_000,
  /** Unknown people of one host that all imports together look up in a day. */
  unknownPeopleOfHost: 200,
  /** Seconds without a heartbeat after which another process continues an import. */
  workerSeconds: 60,
  /** Attempts at one place of the archive after which an import has failed. */
  attempts: 3,
  /** Hours before items are tried again for which another pod did not answer: after the import, and after each attempt. */
  retryHours: [1, 24, 168, 720],
  /** Archives that a person can have checked a day. */
  checksADay: 5,
  /** Days for which a check is valid. */
  checkDays: 1,
  /** Attempts to look up an old account whose pod does not answer, and the minutes between them. */
  identityAttempts: 3,
  /** A pod that restarts is back by then. */
  identityMinutes: 10,
  /** Bytes of a part of an uploaded file. */
  partBytes: 8 * 1024 ** 2,
  /** Bytes of the disk that uploads, the lists of their archives and imported photos leave free. */
  keptFreeBytes: 1024 ** 3,
  /** Seconds for which a request that writes a part of an upload keeps others from writing to it. */
  writingSeconds: 60,
  /** Days after an import is done, or after the upload, when the uploaded files are deleted. */
  doneUploadDays: 1,
  /** Time to decide after the check. */
  uploadDays: 7,
  /** Days for which the items of an import are kept. */
  itemDays: 30,
  /** Days for which a follower of an old account gets public posts without confirming the contact. */
  claimDays: 400,
  /** Entries of a zip of photos, and photos that an archive names: their names are kept in memory. */
  photoEntries: 50_000,
  /** Years for which a move is announced to pods that do not answer. */
  announceYears: 5,
  /** Hours over which the pods of the second wave are spread. */
  secondWaveHours: 24,
  /** Hosts of an archive to which its move is announced at once. The network has some thousand pods. */
  announcedHosts: 10_000,
  /** Refusals of a pod after which the announcement to it ends. */
  announceAttempts: 10,
  /** Attempts without an answer after which the announcement to a pod ends that has never answered anything. */
  announceUnanswered: 30,
} as const
