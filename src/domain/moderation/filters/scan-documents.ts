import { type FilterRow, type FilterSource, readFilterRows } from '../../../persistence/moderation/filter-rows.js'
import type { FilterRule, StoredFilter } from '../../../persistence/moderation/filters.js'
import { DAY_MS } from '../../../protocol/durations.js'
import type { Services } from '../../../services/services.js'
import { Refusal } from '../../refusals.js'
import { MODERATION_LIMITS } from '../limits.js'
import { type FilteredDocument, keepApplicableMatches } from './check-documents.js'
import {
  commentDocument,
  type FilterDocument,
  messageDocument,
  postDocument,
  profileDocument,
} from './filter-document.js'
import { compileFilters } from './filter-matcher.js'

const ROW_BATCH_SIZE = 2_000

export interface ScanResult {
  /** Stored content that the filter applies to, newest first within its kind. */
  readonly found: readonly FilteredDocument[]
  /** The time of the oldest row that was read. */
  readonly scannedFrom: Date
  /** False: the scan reached the limit of rows or seconds first. */
  readonly complete: boolean
}

/** The beginning of the last days. Throws `days_invalid` for more than a scan can read. */
export function sinceDays({ now }: Pick<Services, 'now'>, days: number): Date {
  if (days < 1 || days > MODERATION_LIMITS.dryRunDays) {
    throw new Refusal('days_invalid', `The content of 1 to ${MODERATION_LIMITS.dryRunDays} days can be read.`)
  }
  return new Date(now().getTime() - days * DAY_MS)
}

interface SourceScan {
  readonly source: FilterSource
  before: number
  isOver: boolean
}

/** Compares stored content since a time with one filter: the newest rows of each table first, up to the limits of a dry run. */
export async function scanDocuments(
  services: Pick<Services, 'db' | 'now'>,
  rule: FilterRule,
  since: Date,
  { rows: maxRows = MODERATION_LIMITS.dryRunRows }: { readonly rows?: number } = {},
): Promise<ScanResult> {
  const filter: StoredFilter = {
    ...rule,
    id: 0,
    version: 0,
    createdBy: '',
    createdAt: services.now(),
    changedAt: services.now(),
  }
  const { match } = compileFilters([filter])
  const until = performance.now() + MODERATION_LIMITS.dryRunSeconds * 1_000
  const scans = sourcesOf(rule).map(
    (source): SourceScan => ({ source, before: Number.MAX_SAFE_INTEGER, isOver: false }),
  )
  const documents: FilteredDocument[] = []
  let oldest = services.now()
  let scannedRows = 0
  for (let open = scans; open.length > 0 && scannedRows < maxRows && performance.now() < until; ) {
    for (const scan of open) {
      const limit = Math.min(ROW_BATCH_SIZE, maxRows - scannedRows)
      const rows = await readFilterRows(services.db, scan.source, { ...scan, withPrivate: rule.isPrivate, limit })
      const recent = rows.filter(({ createdAt }) => createdAt >= since)
      scannedRows += rows.length
      scan.before = rows.at(-1)?.id ?? 0
      scan.isOver = (rows.length < limit && limit > 0) || (rows.length > 0 && recent.length === 0)
      for (const { createdAt } of recent) if (createdAt < oldest) oldest = createdAt
      const matches = recent
        .map((row) => documentOf(scan.source, row))
        .flatMap((document) => {
          const matches = match(document)
          return matches.length === 0 ? [] : [{ document, matches }]
        })
      documents.push(...(await keepApplicableMatches(services, matches)))
    }
    open = scans.filter(({ isOver }) => !isOver)
  }
  const isComplete = scans.every(({ isOver }) => isOver)
  return { found: documents, scannedFrom: isComplete ? since : oldest, complete: isComplete }
}

/** The tables that have the fields of a filter. */
function sourcesOf({ fields, isPrivate }: FilterRule): readonly FilterSource[] {
  const has = (...wanted: FilterRule['fields'][number][]) => wanted.some((field) => fields.includes(field))
  return [
    ...(has('post', 'poll', 'tag') ? (['posts'] as const) : []),
    ...(has('comment', 'tag') ? (['comments'] as const) : []),
    ...(has('name', 'bio', 'tag') ? (['people'] as const) : []),
    ...(isPrivate && has('message') ? (['messages'] as const) : []),
  ]
}

function documentOf(source: FilterSource, { guid, author, isPublic, text, more, name }: FilterRow): FilterDocument {
  switch (source) {
    case 'posts':
      return postDocument({ guid, author, isPublic }, { text, poll: more ?? undefined })
    case 'comments':
      return commentDocument({ guid, author, isPublic }, text)
    case 'people':
      return profileDocument({ guid, author }, { name: name ?? '', bio: text, tags: more ?? [] })
    case 'messages':
      return messageDocument({ guid, author }, [text])
  }
}
