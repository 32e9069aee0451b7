import { LIST_LIMITS } from '../../../domain/limits.js'
import { newGuid } from '../../../domain/new-guid.js'
import { normaliseTagName, requireTagName } from '../../../domain/posts/tags.js'
import { Refusal } from '../../../domain/refusals.js'
import { type ImportChange, recordChanges } from '../../../persistence/archives/import-changes.js'
import {
  findAuthorsOfGuids,
  findReadablePosts,
  findSubscribed,
  markPosts,
  subscribeToPosts,
} from '../../../persistence/archives/imported-content.js'
import { Tag } from '../../../persistence/models/tag.js'
import { countFollowedTags, findFollowedTags } from '../../../persistence/posts/list-tags.js'
import { isGuid } from '../../../protocol/values.js'
import type { SpooledItem } from '../reading/spool-archive.js'
import {
  BatchResults,
  type ImportContext,
  type ListImporter,
  NO_REF,
  type ReadyItem,
  readerOf,
} from './import-context.js'

/** Tags that the owner follows. */
export const tagImporter: ListImporter<ReadyItem> = {
  section: 'tags',
  list: 'followed_tags',

  async prepare({ services, user }, items) {
    const results = new BatchResults<ReadyItem>('tags')
    const names = items.map(({ value }) => tagNameOf(value))
    const existingTags = await findFollowedTags(
      services.db,
      user.userId,
      names.flatMap((name) => name ?? []),
    )
    for (const [index, { position }] of items.entries()) {
      const name = names[index]
      if (name === undefined) results.refuse({ position, ref: NO_REF }, 'schema')
      else if (existingTags.has(name)) results.recordPresent({ position, ref: name })
      else results.accept({ position, ref: name })
    }
    return results
  },

  async store({ user, importId }, transaction, ready) {
    const results = new BatchResults<ReadyItem>('tags')
    const changes: ImportChange[] = []
    let count = await countFollowedTags(transaction, user.userId)
    for (const item of ready) {
      if (count >= LIST_LIMITS.followedTags) results.refuse(item, 'over_limit')
      else if (await Tag.follow(transaction, user.userId, item.ref)) {
        count += 1
        results.recordImported(item)
        changes.push({ kind: 'tag', name: item.ref })
      } else results.recordPresent(item)
    }
    await recordChanges(transaction, importId, changes)
    return results.outcomes
  },
}

function tagNameOf(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined
  try {
    return normaliseTagName(requireTagName(value))
  } catch (error) {
    if (error instanceof Refusal) return undefined
    throw error
  }
}

/** Posts of others in which the owner takes part. Nothing is sent to their pods. */
export const subscriptionImporter: ListImporter<ReadyItem> = {
  section: 'subscriptions',
  list: 'post_subscriptions',

  async prepare(context, items) {
    const results = new BatchResults<ReadyItem>('subscriptions')
    const guidItems = readGuids(items, results)
    const guids = guidItems.map(({ ref }) => ref)
    const { db } = context.services
    const holders = await findAuthorsOfGuids(db, 'posts', guids)
    const subscribedGuids = await findSubscribed(db, context.user.personId, guids)
    const missing = guids.filter((guid) => !holders.has(guid))
    await context.fetches?.fetchAll(
      missing.map((guid) => ({ type: 'post', guid, from: context.oldAddress })),
      context.signal,
    )
    const readable = await findReadablePosts(db, readerOf(context), guids)
    for (const item of guidItems) {
      if (subscribedGuids.has(item.ref)) results.recordPresent(item)
      else if (readable.has(item.ref) || isInArchive(context, item.ref)) results.accept(item)
      else results.refuse(item, 'parent_missing')
    }
    return results
  },

  async store({ user }, transaction, ready) {
    const results = new BatchResults<ReadyItem>('subscriptions')
    const posts = ready.map(({ ref }) => ({ guid: ref, participation: newGuid() }))
    const newSubscriptions = await subscribeToPosts(transaction, user.personId, posts)
    for (const item of ready) {
      if (newSubscriptions.has(item.ref)) results.recordImported(item)
      else results.recordPresent(item)
    }
    return results.outcomes
  },
}

/** A check fetches nothing: the import may find more. */
function isInArchive({ fetches, planned }: ImportContext, guid: string): boolean {
  return fetches === undefined || planned?.posts.has(guid) === true
}

/** Posts that the owner has hidden or muted. They are marks of the account, no items of the report. */
export async function importMarks(
  { services, user }: ImportContext,
  table: 'hidden_posts' | 'muted_posts',
  items: readonly SpooledItem[],
): Promise<void> {
  const guids = items.flatMap(({ value }) => (typeof value === 'string' && isGuid(value) ? value : []))
  await services.db.transaction(async (transaction) => markPosts(transaction, table, user.userId, guids))
}

function readGuids(items: readonly SpooledItem[], results: BatchResults<ReadyItem>): readonly ReadyItem[] {
  return items.flatMap(({ position, value }) => {
    if (typeof value === 'string' && isGuid(value)) return [{ position, ref: value }]
    results.refuse({ position, ref: NO_REF }, 'schema')
    return []
  })
}
