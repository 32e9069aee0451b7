import type { Knex } from 'knex'
import { Person } from '../../../persistence/models/person.js'
import {
  createFilterCases,
  type FilterEffect,
  type FilteredAuthor,
  findContentIds,
  findFilteredAuthors,
  insertFilterHits,
  type NewFilterHit,
  type StoredFilter,
} from '../../../persistence/moderation/filters.js'
import { DAY_MS } from '../../../protocol/durations.js'
import type { Services } from '../../../services/services.js'
import type { Viewer } from '../../accounts/viewers.js'
import { enqueueLiveEventsAndMails } from '../../notifications/enqueue-live-events.js'
import { Refusal } from '../../refusals.js'
import { reopeningTimes } from '../cases.js'
import { hideFoundContent } from '../hide-found-content.js'
import { MODERATION_LIMITS } from '../limits.js'
import { loadActiveFilters } from './active-filters.js'
import type { FilterDocument } from './filter-document.js'
import type { FilterMatch } from './filter-matcher.js'

/** A document with the filters that apply to it. */
export interface FilteredDocument<Document extends FilterDocument = FilterDocument> {
  readonly document: Document
  readonly matches: readonly FilterMatch[]
}

/**
 * Returns the documents to which filters apply. One statement reads the authors of all matching documents; without a match there is none.
 */
export async function checkDocuments<Document extends FilterDocument>(
  services: Pick<Services, 'db' | 'jobs' | 'now'>,
  documents: readonly Document[],
): Promise<readonly FilteredDocument<Document>[]> {
  const filters = await loadActiveFilters(services)
  if (filters.size === 0) return []
  const matchedDocuments = documents.flatMap((document) => {
    const matches = filters.match(document)
    return matches.length === 0 ? [] : [{ document, matches }]
  })
  return keepApplicableMatches(services, matchedDocuments)
}

/** Leaves out the matches whose conditions do not hold for the author. */
export async function keepApplicableMatches<Document extends FilterDocument>(
  { db, now }: Pick<Services, 'db' | 'now'>,
  documents: readonly FilteredDocument<Document>[],
): Promise<readonly FilteredDocument<Document>[]> {
  if (documents.length === 0) return []
  const addresses = [...new Set(documents.map(({ document }) => document.author))]
  const authors = new Map((await findFilteredAuthors(db, addresses)).map((author) => [author.address, author]))
  const at = now()
  return documents.flatMap(({ document, matches }) => {
    const author = authors.get(document.author)
    if (author === undefined) return []
    const applicable = matches.filter(({ filter }) => holdsFor(filter, author, at))
    if (applicable.length === 0) return []
    // A received profile names its author by the address alone.
    return [
      { document: document.type === 'person' ? { ...document, guid: author.guid } : document, matches: applicable },
    ]
  })
}

function holdsFor({ origin, accountAgeDays, exemptFollowed }: StoredFilter, author: FilteredAuthor, at: Date): boolean {
  if (author.isStaff || (exemptFollowed && author.isFollowed)) return false
  if (origin !== 'both' && (origin === 'local') !== author.isLocal) return false
  return accountAgeDays === null || at.getTime() - author.firstSeenAt.getTime() < accountAgeDays * DAY_MS
}

export function isRejected({ document, matches }: FilteredDocument): boolean {
  return matches.some(({ filter }) => effectOf(filter, document.type) === 'rejected')
}

const EFFECTS = { count: 'counted', flag: 'flagged', hide: 'hidden', reject: 'rejected' } as const

/** Profiles and messages cannot be hidden; they are counted. */
function effectOf({ state, action }: StoredFilter, type: FilterDocument['type']): FilterEffect {
  if (state !== 'active') return 'counted'
  const isHideable = type === 'post' || type === 'comment'
  return action === 'hide' && !isHideable ? 'counted' : EFFECTS[action]
}

/** Records the hits of a text that was rejected. */
async function recordRejected(db: Knex, rejected: readonly FilteredDocument[], at: Date): Promise<void> {
  const hits = rejected.flatMap(hitsOf)
  if (hits.length > 0) await insertFilterHits(db, hits, latestOfEach(hits), at)
}

/**
 * Inserts the hits of stored and of rejected documents, opens the cases of filters that flag, and hides what filters hide. It is the last
 * step of the transaction that stores the documents: hiding takes counts and notifications back, so both are written before.
 */
export async function applyFilterEffects(
  services: Pick<Services, 'config' | 'jobs' | 'log' | 'now'>,
  transaction: Knex.Transaction,
  stored: readonly FilteredDocument[],
  rejected: readonly FilteredDocument[] = [],
): Promise<void> {
  const hits = stored.flatMap(hitsOf)
  const all = [...hits, ...rejected.flatMap(hitsOf)]
  if (all.length === 0) return
  await insertFilterHits(transaction, all, latestOfEach(all), services.now())
  const flaggedHits = hits.filter(({ effect }) => effect === 'flagged')
  if (flaggedHits.length > 0) {
    await enqueueLiveEventsAndMails(services, transaction, {
      cases: await createFilterCases(transaction, flaggedHits, reopeningTimes(services.now())),
    })
  }
  await hideHits(
    services,
    transaction,
    stored,
    hits.filter(({ effect }) => effect === 'hidden'),
  )
}

/**
 * Each post or comment is hidden by the first filter that hits it. `insertFilterHits` has locked the counters of the filters, one after the other.
 */
async function hideHits(
  services: Pick<Services, 'log' | 'now'>,
  transaction: Knex.Transaction,
  stored: readonly FilteredDocument[],
  hits: readonly NewFilterHit[],
): Promise<void> {
  const filters = new Map(stored.flatMap(({ matches }) => matches.map(({ filter }) => [filter.id, filter])))
  for (const [id, { kind, value }] of [...filters].toSorted(([one], [other]) => one - other)) {
    const ofFilter = hits.filter(({ filterId }) => filterId === id)
    if (ofFilter.length === 0) continue
    const guidsOf = (type: NewFilterHit['targetType']) =>
      ofFilter.flatMap(({ targetType, targetGuid }) => (targetType === type ? [targetGuid] : []))
    const ids = await findContentIds(transaction, { posts: guidsOf('post'), comments: guidsOf('comment') })
    const target = { type: 'filter', guid: String(id), label: `${kind}: ${value}` }
    await hideFoundContent(services, transaction, { target, ids, reason: `Filter ${id} hides this content.` })
  }
}

function hitsOf({ document, matches }: FilteredDocument): readonly NewFilterHit[] {
  const { type, guid, author, isPublic, texts } = document
  return matches.map(({ filter, field }) => ({
    filterId: filter.id,
    targetType: type,
    targetGuid: guid,
    authorAddress: author,
    field,
    excerpt: isPublic ? buildExcerpt(texts.find((text) => text.field === field)?.text ?? '') : null,
    isPublic,
    effect: effectOf(filter, type),
  }))
}

export function buildExcerpt(text: string): string {
  return [...text.slice(0, 2 * MODERATION_LIMITS.excerptCharacters)]
    .slice(0, MODERATION_LIMITS.excerptCharacters)
    .join('')
}

/** A flood of hits stores as many rows as are shown. */
function latestOfEach(hits: readonly NewFilterHit[]): readonly NewFilterHit[] {
  const counts = new Map<number, number>()
  return hits
    .toReversed()
    .filter(({ filterId }) => {
      const count = (counts.get(filterId) ?? 0) + 1
      counts.set(filterId, count)
      return count <= MODERATION_LIMITS.hitsStored
    })
    .toReversed()
}

/**
 * Checks a text of a local person. Records the hits of a text that a filter rejects, and throws `filtered`; the message does not name the
 * word: it would help to avoid it. Returns the matches of any other text, for `applyFilterEffects`. Without filters nothing is read.
 */
export async function requireUnfiltered(
  services: Pick<Services, 'config' | 'db' | 'jobs' | 'log' | 'now'>,
  { personId }: Pick<Viewer, 'personId'>,
  documentOf: (author: string, authorGuid: string) => FilterDocument,
): Promise<readonly FilteredDocument[]> {
  const matchedDocuments = await checkDocument(services, personId, documentOf)
  if (matchedDocuments.some(isRejected)) {
    await recordRejected(services.db, matchedDocuments, services.now())
    throw new Refusal('filtered', 'This text is not accepted on this pod.')
  }
  return matchedDocuments
}

async function checkDocument(
  services: Pick<Services, 'db' | 'jobs' | 'now'>,
  personId: number,
  documentOf: (author: string, authorGuid: string) => FilterDocument,
): Promise<readonly FilteredDocument[]> {
  const filters = await loadActiveFilters(services)
  if (filters.size === 0 || filters.match(documentOf('', '')).length === 0) return []
  const { address, guid } = await Person.query(services.db).findById(personId).throwIfNotFound()
  return checkDocuments(services, [documentOf(address, guid)])
}
