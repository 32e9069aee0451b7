import type { Knex } from 'knex'
import { readMentionedAddresses, readTagNames } from '../../../domain/posts/texts.js'
import {
  findAuthorsOfGuids,
  findParents,
  findReactions,
  type RelayableParent,
} from '../../../persistence/archives/imported-content.js'
import type { ImportSection, ItemOutcome } from '../../../persistence/archives/imports.js'
import {
  insertComments,
  insertLikes,
  insertVotes,
  type RelayableOutcome,
} from '../../../persistence/inbound/insert-relayables.js'
import { raiseCounts } from '../../../persistence/inbound/raise-counts.js'
import { Mention } from '../../../persistence/models/mention.js'
import { Tag } from '../../../persistence/models/tag.js'
import { RECORD_TABLES } from '../../../persistence/sql/record-tables.js'
import { RELAYABLE_KINDS } from '../../../protocol/entities/registry.js'
import type {
  CommentEntity,
  Elements,
  LikeEntity,
  PollParticipationEntity,
} from '../../../protocol/entities/relayables.js'
import { readTimestamp } from '../../../protocol/values.js'
import { countChanges } from '../../inbound/store/counter-changes.js'
import { plausibleTime } from '../../inbound/store/plausible-time.js'
import type { SpooledItem } from '../reading/spool-archive.js'
import { BatchResults, type ImportContext, type ReadyItem } from './import-context.js'
import { buildImportedMessage } from './imported-message.js'
import { readArchivedEntity } from './read-entity.js'

export type ArchivedRelayable = CommentEntity | LikeEntity | PollParticipationEntity

export interface ReadyRelayable extends ReadyItem {
  readonly entity: ArchivedRelayable
  /** The network ID under which it is stored. */
  readonly author: string
  /** Stored next to the entity of a like or a vote; undefined: not in the archive. */
  readonly createdAt: Date | undefined
  /** Texts and signature of others, for relaying. */
  readonly signed?: { readonly signature: string | undefined; readonly elements: Elements } | undefined
}

/** Reads relayables; anything else is refused. */
export function readRelayables(
  context: ImportContext,
  items: readonly SpooledItem[],
  results: BatchResults<ReadyRelayable>,
): readonly ReadyRelayable[] {
  const now = context.services.now()
  return items.flatMap(({ position, value }) => {
    const read = readArchivedEntity(value, now)
    const item = { position, ref: read.ref }
    if (!read.ok) {
      results.refuse(item, read.reason)
      return []
    }
    const { entity, members } = read
    const isKnown = entity.type === 'comment' || entity.type === 'like' || entity.type === 'poll_participation'
    if (!isKnown) {
      results.refuse(item, 'schema')
      return []
    }
    return [{ ...item, entity, author: entity.author, createdAt: readTime(members['created_at']) }]
  })
}

/** Reads a time with milliseconds, which the protocol does not have: this pod writes them next to the entity. */
function readTime(value: unknown): Date | undefined {
  if (typeof value !== 'string' || readTimestamp(value) === undefined) return undefined
  const time = new Date(value)
  return Number.isNaN(time.getTime()) ? readTimestamp(value) : time
}

/** The stored entities with these guids, by their authors. */
export async function findStoredRelayables(
  db: Knex,
  relayables: readonly ReadyRelayable[],
): Promise<ReadonlyMap<string, string>> {
  const addresses = new Map<string, string>()
  for (const kind of RELAYABLE_KINDS) {
    const guids = relayables.filter(({ entity }) => entity.type === kind).map(({ ref }) => ref)
    for (const [guid, holder] of await findAuthorsOfGuids(db, RECORD_TABLES[kind].table, guids))
      addresses.set(guid, holder)
  }
  return addresses
}

/** The parents of relayables that are stored here, by `buildParentKey`. */
export async function findParentsOf(
  db: Knex,
  relayables: readonly ReadyRelayable[],
): Promise<ReadonlyMap<string, RelayableParent>> {
  return findParents(db, [...new Set(relayables.map(({ entity }) => entity.parent_guid))])
}

export function buildParentKey(entity: ArchivedRelayable): string {
  return `${readParentKind(entity)} ${entity.parent_guid}`
}

export function readParentKind(entity: ArchivedRelayable): 'Post' | 'Comment' | 'Poll' {
  if (entity.type === 'poll_participation') return 'Poll'
  return entity.type === 'like' ? entity.parent_type : 'Post'
}

/** Whether an earlier item of the archive is the parent, during a check. */
export function isPlannedParent({ planned }: ImportContext, entity: ArchivedRelayable): boolean {
  if (planned === undefined) return false
  const guids = { Post: planned.posts, Comment: planned.comments, Poll: planned.polls }
  return guids[readParentKind(entity)].has(entity.parent_guid)
}

/** Stores relayables and raises the counters; without notifications and deliveries. */
export async function storeRelayables(
  context: ImportContext,
  transaction: Knex.Transaction,
  section: ImportSection,
  items: readonly ReadyRelayable[],
): Promise<readonly ItemOutcome[]> {
  const now = context.services.now()
  const { ready, repeated } = withoutRepeated(items)
  const comments = ready.flatMap((each) => (each.entity.type === 'comment' ? { ...each, entity: each.entity } : []))
  const likes = ready.flatMap((each) => (each.entity.type === 'like' ? { ...each, entity: each.entity } : []))
  const votes = ready.flatMap((each) =>
    each.entity.type === 'poll_participation' ? { ...each, entity: each.entity } : [],
  )
  const results = [
    await insertComments(
      transaction,
      comments.map((each) => ({ ...columnsOf(each), text: each.entity.text, createdAt: timeOf(each, now) })),
    ),
    await insertLikes(
      transaction,
      likes.map((each) => {
        const { parent_type: parentType, positive } = each.entity
        return { ...columnsOf(each), parentType, positive, createdAt: timeOf(each, now) }
      }),
    ),
    await insertVotes(
      transaction,
      votes.map((each) => ({ ...columnsOf(each), answer: each.entity.poll_answer_guid, createdAt: timeOf(each, now) })),
    ),
  ].flat()
  const outcomes = new Map(results.map((outcome) => [outcome.guid, outcome]))
  const storedRelayables = ready.filter(({ ref }) => typeof outcomes.get(ref)?.id === 'number')
  await attachTexts(transaction, storedRelayables, outcomes, now)
  await raiseCountersOfParents(transaction, storedRelayables, now)
  const present = new BatchResults<ReadyRelayable>(section)
  for (const item of repeated) present.recordPresent(item)
  return [...(await outcomesOf(transaction, section, ready, outcomes)), ...present.outcomes]
}

/** An archive may name an item twice: the second one is there already. */
function withoutRepeated(items: readonly ReadyRelayable[]) {
  const first = new Map(items.toReversed().map((item) => [`${item.entity.type} ${item.ref}`, item]))
  const ready = new Set(first.values())
  return { ready: [...ready], repeated: items.filter((item) => !ready.has(item)) }
}

function columnsOf({ entity, author, signed }: ReadyRelayable) {
  return { guid: entity.guid, author, parent: entity.parent_guid, signed }
}

function timeOf({ entity, createdAt }: ReadyRelayable, now: Date): Date {
  if (entity.type === 'comment') return plausibleTime(entity.created_at, now, now)
  return createdAt === undefined ? now : plausibleTime(createdAt, now, now)
}

async function attachTexts(
  transaction: Knex.Transaction,
  stored: readonly ReadyRelayable[],
  outcomes: ReadonlyMap<string, RelayableOutcome>,
  now: Date,
): Promise<void> {
  const comments = stored.flatMap(({ entity, ref }) => {
    const { id = null, threadPost } = outcomes.get(ref) ?? {}
    return entity.type === 'comment' && id !== null ? [{ commentId: id, text: entity.text, threadPost }] : []
  })
  await Tag.attachToAll(
    transaction,
    comments.map(({ commentId, text, threadPost }) => ({
      commentId,
      createdAt: new Date(threadPost?.createdAt ?? now),
      isPublic: threadPost?.isPublic ?? false,
      names: readTagNames(text),
    })),
  )
  await Mention.attachToAll(
    transaction,
    comments.map(({ commentId, text }) => ({ commentId, addresses: readMentionedAddresses(text) })),
  )
}

/** A post is as recent as its newest comment, not as recent as the import. */
async function raiseCountersOfParents(
  transaction: Knex.Transaction,
  stored: readonly ReadyRelayable[],
  now: Date,
): Promise<void> {
  const latest = new Map<string, Date>()
  for (const each of stored) {
    if (each.entity.type !== 'comment') continue
    const time = timeOf(each, now)
    const latestInteraction = latest.get(each.entity.parent_guid)
    if (latestInteraction === undefined || latestInteraction < time) latest.set(each.entity.parent_guid, time)
  }
  const records = stored.map(({ entity }) => ({
    id: 0,
    message: buildImportedMessage({ ...entity, elements: entity.elements ?? [] }, now),
  }))
  const counts = countChanges(records, now)
  await raiseCounts(transaction, {
    ...counts,
    posts: counts.posts.map((post) => ({ ...post, latest: latest.get(post.guid) })),
  })
}

async function outcomesOf(
  transaction: Knex.Transaction,
  section: ImportSection,
  ready: readonly ReadyRelayable[],
  outcomes: ReadonlyMap<string, RelayableOutcome>,
): Promise<readonly ItemOutcome[]> {
  const results = new BatchResults<ReadyRelayable>(section)
  const unclear: ReadyRelayable[] = []
  for (const each of ready) {
    const outcome = outcomes.get(each.ref)
    if (outcome === undefined || outcome.threadPost === null) results.refuse(each, 'parent_missing')
    else if (outcome.id !== null) results.recordImported(each)
    else if (outcome.existingAuthor === each.author) results.recordPresent(each)
    else if (outcome.existingAuthor !== null) results.refuse(each, 'guid_taken')
    else if (outcome.threadPost.isAnswerUnknown) results.refuse(each, 'schema')
    else if (outcome.threadPost.isAuthorBlocked) results.refuse(each, 'blocked')
    else unclear.push(each)
  }
  const existingReactions = await findReactions(
    transaction,
    unclear.map(({ entity, author }) => ({ kind: readParentKind(entity), parent: entity.parent_guid, author })),
  )
  for (const each of unclear) {
    const key = `${buildParentKey(each.entity)} ${each.author}`
    results.refuse(each, each.entity.type !== 'comment' && existingReactions.has(key) ? 'duplicate' : 'deleted_before')
  }
  return results.outcomes
}
