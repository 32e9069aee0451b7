/** How far a long command has come. */
export interface Progress {
  readonly step: string
  readonly done: number
  /** Undefined: not known. */
  readonly total: number | undefined
}

export type ReportProgress = (progress: Progress) => void
