/** How far a long command has come. */
export interface Progress {
  readonly step: string
  readonly done: number
  /** Undefined: not known. */
  readonly total: number | undefined
  /** Further facts for the operator, such as the number of removed rows. */
  readonly note?: string | undefined
}

export type ReportProgress = (progress: Progress) => void
