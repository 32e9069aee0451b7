import type { Services } from '../../services/services.js'
import { isQueueName, QUEUES, type QueueName } from '../queues/queue-names.js'

/** Work that was given up: a failed job of the queue, an outbox row whose job failed, or a delivery to another pod. */
export interface DeadLetter {
  /** `outbox-17`, `delivery-17`, or queue and job as in `inbound-private/42`. */
  readonly id: string
  readonly queue: string
  readonly name: string
  /** Null: the queue was emptied since, and the row does not store it. */
  readonly fault: string | null
  /** The host of the other pod, and the type and guid of the entity; null where only the payload has them. */
  readonly pod: string | null
  readonly entity: string | null
  readonly guid: string | null
  readonly attempts: number | null
  /** Trace of the request or message that caused it. */
  readonly trace: string | null
  readonly createdAt: Date
  readonly failedAt: Date
}

/** Selects dead letters; without a field, all of them. */
export interface DeadLetterFilter {
  /** Only dead letters with these ids; other ids are ignored. */
  readonly ids?: readonly string[]
  readonly queue?: QueueName
  readonly fault?: string
  /** `far.example:8443`: only dead letters of this pod, as far as the pod is known. */
  readonly pod?: string
  /** `post`, `comment` …: only dead letters about such an entity, as far as it is known. */
  readonly entity?: string
  /** Given up from this time on. */
  readonly since?: Date
  /** Given up before this time. */
  readonly until?: Date
}

export type DeadLetterDependencies = Pick<Services, 'db' | 'jobs'>

/** The position in a list of dead letters. */
export type DeadLetterPosition = Pick<DeadLetter, 'id' | 'failedAt'>

/** The dead letters before a position, latest first, or those after one, oldest first. Without a position: the latest. */
export interface DeadLetterPage {
  readonly before?: DeadLetterPosition | undefined
  readonly after?: DeadLetterPosition | undefined
  readonly limit: number
}

/** Where the work is stored that was given up: in rows of the outbox, in deliveries, or only in the failed jobs of a queue. */
export type DeadLetterSource = 'deliveries' | 'rows' | QueueName

const SOURCES: readonly DeadLetterSource[] = ['deliveries', ...QUEUES, 'rows']

/** The source and the id in it; undefined: no dead letter can have this id. */
function parseDeadLetterId(id: string): { readonly source: DeadLetterSource; readonly key: string } | undefined {
  const [, table, digits = ''] = /^(outbox|delivery)-([0-9]{1,15})$/.exec(id) ?? []
  if (table !== undefined) return { source: table === 'outbox' ? 'rows' : 'deliveries', key: digits }
  const [, queue = '', key = ''] = /^([a-z-]+)\/(.+)$/.exec(id) ?? []
  return isQueueName(queue) ? { source: queue, key } : undefined
}

/** The ids in one source, of those dead letters that are stored there. */
export function keysOfSource(ids: readonly string[], source: DeadLetterSource): readonly string[] {
  return ids.flatMap((id) => {
    const parsedId = parseDeadLetterId(id)
    return parsedId?.source === source ? [parsedId.key] : []
  })
}

/** Compares by time, then by source, then by id. */
export function compareDeadLetters(one: DeadLetterPosition, other: DeadLetterPosition): number {
  const time = one.failedAt.getTime() - other.failedAt.getTime()
  if (time !== 0) return time
  const [a, b] = [parseDeadLetterId(one.id), parseDeadLetterId(other.id)]
  const source = rankOf(a?.source) - rankOf(b?.source)
  if (source !== 0) return source
  const [x, y] = [a?.key ?? '', b?.key ?? '']
  if (a?.source === 'rows' || a?.source === 'deliveries') return Number(x) - Number(y)
  return x < y ? -1 : x > y ? 1 : 0
}

function rankOf(source: DeadLetterSource | undefined): number {
  return source === undefined ? -1 : SOURCES.indexOf(source)
}

/** A position as one source has it: a time and an id in the source. */
interface SourcePosition<Id> {
  readonly at: Date
  readonly id: Id
}

/** A page of one source. */
export interface SourcePage<Id> {
  readonly order: 'newest first' | 'oldest first'
  readonly startAfter: SourcePosition<Id>
  readonly limit: number
}

interface IdRange<Id> {
  readonly min: Id
  readonly max: Id
  readonly read: (key: string) => Id
}

export const NUMERIC_IDS: IdRange<number> = { min: 0, max: Number.MAX_SAFE_INTEGER, read: Number }
export const TEXT_IDS: IdRange<string> = { min: '', max: '\u{7f}', read: (key) => key }

/** The latest time that a JavaScript date and PostgreSQL both have. */
const END_OF_TIME = new Date('9999-01-01T00:00:00Z')

/** The part of a page that a source has. Times at the ends of the filter are positions too, so that the index leads there. */
export function pageOfSource<Id>(
  source: DeadLetterSource,
  { before, after, limit }: DeadLetterPage,
  { since, until }: DeadLetterFilter,
  ids: IdRange<Id>,
): SourcePage<Id> {
  const order = before === undefined && after !== undefined ? 'oldest first' : 'newest first'
  const position = before ?? after
  const ofPosition = position && positionIn(source, position, ids)
  if (order === 'oldest first') {
    const start = { at: since ?? new Date(0), id: ids.min }
    return { order, limit, startAfter: ofPosition && ofPosition.at >= start.at ? ofPosition : start }
  }
  const start = { at: until ?? END_OF_TIME, id: ids.min }
  return { order, limit, startAfter: ofPosition && ofPosition.at < start.at ? ofPosition : start }
}

function positionIn<Id>(source: DeadLetterSource, position: DeadLetterPosition, ids: IdRange<Id>): SourcePosition<Id> {
  const parsedId = parseDeadLetterId(position.id)
  const at = position.failedAt
  if (parsedId?.source === source) return { at, id: ids.read(parsedId.key) }
  return { at, id: rankOf(source) < rankOf(parsedId?.source) ? ids.max : ids.min }
}
