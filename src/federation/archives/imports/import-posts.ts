import type { Knex } from 'knex'
import {
  findAuthorsOfGuids,
  findPostsWithoutAspects,
  findRoots,
  insertPostAspects,
} from '../../../persistence/archives/imported-content.js'
import { raiseCounts } from '../../../persistence/inbound/raise-counts.js'
import { Aspect } from '../../../persistence/models/aspect.js'
import type { ReshareEntity, StatusMessageEntity } from '../../../protocol/entities/posts.js'
import { countChanges } from '../../inbound/store/counter-changes.js'
import { storeReshares, storeStatusMessages } from '../../inbound/store/store-posts.js'
import { isOwner } from '../owner.js'
import type { SpooledItem } from '../reading/spool-archive.js'
import { readAspectName } from './aspect-names.js'
import { BatchResults, type ImportContext, type ListImporter, type ReadyItem } from './import-context.js'
import { buildImportedMessage } from './imported-message.js'
import { readArchivedEntity } from './read-entity.js'

interface ReadyPost extends ReadyItem {
  readonly entity: StatusMessageEntity | ReshareEntity
  /** Names of the aspects with which a private post was shared. */
  readonly aspects: readonly string[]
}

/** Posts of the owner, with their photos, polls and places, under their old guids and times. */
export const postImporter: ListImporter<ReadyPost> = {
  section: 'posts',
  list: 'posts',

  async prepare(context, items) {
    const results = new BatchResults<ReadyPost>('posts')
    const readPosts = items.flatMap((item) => readPost(context, item, results))
    const guids = readPosts.map(({ ref }) => ref)
    const { db } = context.services
    const existingAuthors = await findAuthorsOfGuids(db, 'posts', guids)
    const takenParts = await findTakenParts(context, readPosts)
    const roots = await findOrFetchRoots(
      context,
      readPosts.filter(({ ref }) => !existingAuthors.has(ref)),
    )
    for (const post of readPosts) {
      const existingAuthor = existingAuthors.get(post.ref)
      if (existingAuthor !== undefined) {
        if (isOwner(context, existingAuthor)) results.recordPresent(post)
        else results.refuse(post, 'guid_taken')
        continue
      }
      const { entity } = post
      if (entity.type === 'reshare') {
        const root = entity.root_guid === undefined ? undefined : roots.get(entity.root_guid)
        if (root === undefined || !root.public) results.refuse(post, 'root_missing')
        else results.accept(post)
        continue
      }
      results.accept({ ...post, entity: withoutTakenParts(entity, takenParts) })
    }
    if (context.planned !== undefined) recordPlanned(context.planned, results.ready)
    return results
  },

  async store(context, transaction, ready) {
    const { services } = context
    const now = services.now()
    const results = new BatchResults<ReadyPost>('posts')
    const postsByGuid = new Map(ready.map((post) => [post.entity.guid, post]))
    const statuses = ready.flatMap(({ entity }) =>
      entity.type === 'status_message' ? buildImportedMessage(entity, now) : [],
    )
    const reshares = ready.flatMap(({ entity }) => (entity.type === 'reshare' ? buildImportedMessage(entity, now) : []))
    const storeResults = [
      await storeStatusMessages(services, transaction, statuses, now),
      await storeReshares(services, transaction, reshares, now),
    ]
    const records = storeResults.flatMap(({ records }) => [...records])
    await raiseCounts(transaction, countChanges(records, now))
    await shareWithAspects(transaction, context, records, postsByGuid)

    const storedGuids = new Set(records.map(({ message }) => message.entity.guid))
    const takenGuids = new Set(
      storeResults.flatMap(({ rejected }) => rejected.map(({ message }) => guidOf(message?.entity))),
    )
    const unstoredPosts = ready.filter(({ ref }) => !storedGuids.has(ref) && !takenGuids.has(ref))
    const existingAuthors = await findAuthorsOfGuids(
      transaction,
      'posts',
      unstoredPosts.map(({ ref }) => ref),
    )
    for (const post of ready) {
      if (storedGuids.has(post.ref)) results.recordImported(post)
      else if (takenGuids.has(post.ref)) results.refuse(post, 'guid_taken')
      else if (existingAuthors.has(post.ref)) results.recordPresent(post)
      else results.refuse(post, post.entity.type === 'reshare' ? 'duplicate' : 'deleted_before')
    }
    return results.outcomes
  },
}

function readPost(
  context: ImportContext,
  { position, value }: SpooledItem,
  results: BatchResults<ReadyPost>,
): ReadyPost[] {
  const read = readArchivedEntity(value, context.services.now())
  const item = { position, ref: read.ref }
  if (!read.ok) {
    results.refuse(item, read.reason)
    return []
  }
  const { entity, members } = read
  if (entity.type !== 'status_message' && entity.type !== 'reshare') {
    results.refuse(item, 'schema')
    return []
  }
  if (!isOwner(context, entity.author)) {
    results.refuse(item, 'foreign_author')
    return []
  }
  const author = context.user.address
  if (entity.type === 'reshare') return [{ ...item, entity: { ...entity, author }, aspects: [] }]
  if (
    entity.text.trim() === '' &&
    entity.photos.length === 0 &&
    entity.poll === undefined &&
    entity.location === undefined
  ) {
    results.refuse(item, 'empty')
    return []
  }
  const names = Array.isArray(members['aspects']) ? members['aspects'] : []
  return [
    {
      ...item,
      entity: { ...entity, author, photos: entity.photos.map((photo) => ({ ...photo, author })) },
      aspects: names.flatMap((name) => readAspectName(context, name) ?? []),
    },
  ]
}

/** Guids of photos and polls that belong to others: the post is stored without them. */
async function findTakenParts(context: ImportContext, posts: readonly ReadyPost[]): Promise<ReadonlySet<string>> {
  const { db } = context.services
  const statuses = posts.flatMap(({ entity }) => (entity.type === 'status_message' ? [entity] : []))
  const photos = await findAuthorsOfGuids(
    db,
    'photos',
    statuses.flatMap((entity) => entity.photos.map(({ guid }) => guid)),
  )
  const polls = await findAuthorsOfGuids(
    db,
    'polls',
    statuses.flatMap(({ poll }) => poll?.guid ?? []),
  )
  const foreign = [...photos, ...polls].filter(([, author]) => !isOwner(context, author))
  return new Set(foreign.map(([guid]) => guid))
}

function withoutTakenParts(entity: StatusMessageEntity, taken: ReadonlySet<string>): StatusMessageEntity {
  const photos = entity.photos.filter(({ guid }) => !taken.has(guid))
  const { poll, ...rest } = entity
  return { ...rest, photos, ...(poll !== undefined && !taken.has(poll.guid) && { poll }) }
}

async function findOrFetchRoots(context: ImportContext, posts: readonly ReadyPost[]) {
  const reshares = posts.flatMap(({ entity }) => (entity.type === 'reshare' ? [entity] : []))
  const guids = reshares.flatMap(({ root_guid: guid }) => guid ?? [])
  const roots = await findRoots(context.services.db, guids)
  const missing = reshares.filter(({ root_guid: guid }) => guid !== undefined && !roots.has(guid))
  if (missing.length === 0) return roots
  // A check fetches nothing: the import may find more.
  if (context.fetches === undefined) return new Map([...roots, ...missing.map(asFetchable)])
  await context.fetches.fetchAll(
    missing.flatMap(({ root_guid: guid, root_author: from }) =>
      guid === undefined || from === undefined ? [] : [{ type: 'post' as const, guid, from }],
    ),
    context.signal,
  )
  return findRoots(context.services.db, guids)
}

function asFetchable({ root_guid: guid = '' }: ReshareEntity) {
  return [guid, { public: true, type: 'StatusMessage' }] as const
}

async function shareWithAspects(
  transaction: Knex.Transaction,
  { user }: ImportContext,
  records: readonly { readonly id: number; readonly message: { readonly entity: { readonly guid: string } } }[],
  posts: ReadonlyMap<string, ReadyPost>,
): Promise<void> {
  const postsWithAspects = records.flatMap(({ id, message: { entity } }) => {
    const post = posts.get(entity.guid)
    return post === undefined || post.aspects.length === 0 ? [] : [{ postId: id, names: post.aspects }]
  })
  if (postsWithAspects.length === 0) return
  const aspects = await Aspect.query(transaction).where({ userId: user.userId })
  const ids = new Map(aspects.map(({ name, id }) => [name.toLowerCase(), id]))
  await insertPostAspects(
    transaction,
    postsWithAspects.flatMap(({ postId, names }) =>
      names.flatMap((name) => {
        const aspectId = ids.get(name.toLowerCase())
        return aspectId === undefined ? [] : [{ postId, aspectId }]
      }),
    ),
  )
}

/**
 * Private posts that this pod had before the import get the aspects of the archive: from these it knows which people of other pods may
 * comment on them. Comments are sent to all members of an aspect, so aspects with other members than in the archive are left out.
 */
export async function shareKnownPosts(
  context: ImportContext,
  items: readonly SpooledItem[],
  aspectsOfOthers: ReadonlySet<string>,
): Promise<void> {
  const { services, user } = context
  const readPosts = items.flatMap((item) => readPost(context, item, new BatchResults<ReadyPost>('posts')))
  const posts = new Map(
    readPosts.flatMap((post) => {
      const aspects = post.aspects.filter((name) => !aspectsOfOthers.has(name.toLowerCase()))
      return aspects.length === 0 ? [] : [[post.ref, { ...post, aspects }]]
    }),
  )
  if (posts.size === 0) return
  await services.db.transaction(async (transaction) => {
    const known = await findPostsWithoutAspects(transaction, user.personId, [...posts.keys()])
    const records = known.map(({ id, guid }) => ({ id, message: { entity: { guid } } }))
    await shareWithAspects(transaction, context, records, posts)
  })
}

function recordPlanned(planned: NonNullable<ImportContext['planned']>, posts: readonly ReadyPost[]): void {
  for (const { entity } of posts) {
    planned.posts.add(entity.guid)
    if (entity.type === 'status_message' && entity.poll !== undefined) planned.polls.add(entity.poll.guid)
  }
}

function guidOf(entity: object | undefined): string | undefined {
  return entity !== undefined && 'guid' in entity && typeof entity.guid === 'string' ? entity.guid : undefined
}
