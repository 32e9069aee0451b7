/** Actions, reports and lists of moderators. */
export const MODERATION_LIMITS = {
  /** A reason and a note are read in lists. */
  reasonCharacters: 2_000,
  /** Reports of one user in `reportsPerSeconds`. */
  maxReports: 30,
  /** The period of `reports`: an hour. */
  reportsPerSeconds: 3_600,
  /** A taken case without an entry for this time is open again. */
  takenCaseSeconds: 86_400,
  /** A closed case about a person that the pod notices again after this time is open again. The search for senders reads an hour. */
  reopenedAfterSeconds: 3_600,
  /** An imported list of rules. */
  importRows: 20_000,
  /** Bytes of an imported list: 20 000 rows with a comment. */
  importBytes: 5 * 1_024 * 1_024,
  /** Rows of an operation in one transaction. */
  rowsOfChunk: 1_000,
  /** People whose content is hidden or shown in one transaction. */
  peopleOfChunk: 100,
  /** Sign-ups with one invitation. */
  invitationUses: 100,
  /** Days for which an invitation is valid by default. */
  invitationDays: 14,
  /** A link that is forgotten somewhere ends within a year. */
  maxInvitationDays: 365,
  /** Rules whose time is over, in one transaction. */
  endedRulesPerBatch: 100,
  /** Items of a page of the admin API without `per_page`. */
  pageItems: 50,
  /** The items are read in full. */
  maxPageItems: 100,
  /** All are compiled in each process and compared with each text. */
  filters: 1_000,
  /** Characters of the value of a filter. */
  filterCharacters: 100,
  /** Minimum number of characters in a row without `*` in a pattern: the search begins with them. */
  patternPieceCharacters: 3,
  /** Characters of a word that are compared on each side of the pattern. */
  patternWordCharacters: 100,
  /** Comparisons of words with patterns for one text. */
  patternComparisons: 20_000,
  /** Latest hits kept of each filter, and shown with it. */
  hitsStored: 50,
  /** Days for which hits are kept, as evidence for a change of the filter. */
  hitDays: 30,
  /** Characters of the shown text of a hit or a sample. */
  excerptCharacters: 200,
  /** A dry run ends after this number of rows or seconds, newest rows first. */
  dryRunRows: 200_000,
  /** A person waits for the answer. */
  dryRunSeconds: 20,
  /** A filter is written for recent content. */
  dryRunDays: 30,
  /** A person can look through them. */
  dryRunSamples: 50,
  /** Links or photos of one text that are compared with other content. */
  keysOfContent: 20,
  /** Shorter texts, without mentions, numbers and queries of links, are not compared. */
  clusterTextCharacters: 20,
  /** New rows of each table that one search for clusters reads, in chunks. */
  clusterRows: 20_000,
  /** Rows of such a chunk: one transaction. */
  clusterRowsPerBatch: 1_000,
  /** Items of one cluster; a cleaning reads them all. */
  clusterItems: 20_000,
  /** Authors who are known for less time are new. */
  newAuthorDays: 7,
  /** Actions on authors who are known for longer are not proposed. */
  knownAuthorDays: 30,
  /** Items and authors of one page or answer about a cluster. */
  clusterItemsShown: 100,
  /** Authors whose content one cleaning changes. */
  clusterAuthors: 2_000,
  /** Pods that one cleaning makes rules for. */
  clusterPods: 50,
  /** Items that a moderator cleans; an admin cleans all. */
  cleanedByModerator: 500,
  /** Items and authors that a cleaning or its undo changes within the request; more are changed in the background. */
  cleanedInRequest: 200,
  /** Retractions within the request. */
  removedInRequest: 20,
  /** Items with a retraction in one cleaning; the others are hidden, and removed by the next one. */
  removedPerCleaning: 500,
} as const
