import { findReadablePosts, type RelayableParent } from '../../../persistence/archives/imported-content.js'
import { isOwner } from '../owner.js'
import { BatchResults, type ImportContext, type ListImporter, readerOf } from './import-context.js'
import {
  buildParentKey,
  findParentsOf,
  findStoredRelayables,
  isPlannedParent,
  type ReadyRelayable,
  readParentKind,
  readRelayables,
  storeRelayables,
} from './import-relayables.js'

const SECTION = 'relayables'

/** Comments, likes and votes of the owner under any post. Signatures are ignored: the importing account becomes the author. */
export function ownRelayableImporter(list: 'own_comments' | 'own_reactions'): ListImporter<ReadyRelayable> {
  return {
    section: SECTION,
    list,

    async prepare(context, items) {
      const results = new BatchResults<ReadyRelayable>(SECTION)
      const { db } = context.services
      const ownRelayables = readRelayables(context, items, results).flatMap((each) => {
        if (isOwner(context, each.author)) return [asOwn(context, each)]
        results.refuse(each, 'foreign_author')
        return []
      })
      const existingAuthors = await findStoredRelayables(db, ownRelayables)
      const newRelayables = ownRelayables.filter((each) => {
        const existingAuthor = existingAuthors.get(each.ref)
        if (existingAuthor === undefined) return true
        if (isOwner(context, existingAuthor)) results.recordPresent(each)
        else results.refuse(each, 'guid_taken')
        return false
      })
      const parents = await findOrFetchParents(context, newRelayables)
      for (const each of newRelayables) {
        const isThere = parents.has(buildParentKey(each.entity)) || isPlannedParent(context, each.entity)
        // A check fetches nothing: the import may find more.
        if (isThere || context.fetches === undefined) results.accept(each)
        else results.refuse(each, 'parent_missing')
      }
      for (const { entity } of results.ready) {
        if (entity.type === 'comment') context.planned?.comments.add(entity.guid)
      }
      return results
    },

    store: async (context, transaction, ready) => storeRelayables(context, transaction, SECTION, ready),
  }
}

/** Who cannot read a private post cannot have written below it here. */
async function findReadableParents(
  context: ImportContext,
  relayables: readonly ReadyRelayable[],
): Promise<ReadonlyMap<string, RelayableParent>> {
  const { db } = context.services
  const parents = await findParentsOf(db, relayables)
  const guids = [...parents.values()].map(({ threadGuid }) => threadGuid)
  const readable = await findReadablePosts(db, readerOf(context), guids)
  return new Map([...parents].filter(([, { threadGuid }]) => readable.has(threadGuid)))
}

function asOwn({ user }: ImportContext, each: ReadyRelayable): ReadyRelayable {
  const { author_signature: _, elements: __, ...entity } = each.entity
  return { ...each, author: user.address, entity: { ...entity, author: user.address } as ReadyRelayable['entity'] } // only optional members are missing
}

/** Parents that are missing are fetched through the old pod, then from the pods of their authors, if the archive names them. */
async function findOrFetchParents(
  context: ImportContext,
  relayables: readonly ReadyRelayable[],
): Promise<ReadonlyMap<string, RelayableParent>> {
  const parents = await findReadableParents(context, relayables)
  const isMissing = (found: typeof parents) => (each: ReadyRelayable) =>
    !found.has(buildParentKey(each.entity)) && !isPlannedParent(context, each.entity)
  const missing = relayables.filter(isMissing(parents))
  if (missing.length === 0 || context.fetches === undefined) return parents
  await fetchParents(context, missing, () => context.oldAddress)
  const fetched = await findReadableParents(context, relayables)
  const authors = await context.fetches.parentAuthors()
  const named = missing.filter(isMissing(fetched)).filter(({ entity }) => authors.has(entity.parent_guid))
  if (named.length === 0) return fetched
  await fetchParents(context, named, (guid) => authors.get(guid))
  return findReadableParents(context, relayables)
}

async function fetchParents(
  context: ImportContext,
  relayables: readonly ReadyRelayable[],
  sourceOf: (guid: string) => string | undefined,
): Promise<void> {
  const types = { Post: 'post', Comment: 'comment', Poll: 'poll' } as const
  const fetchRequests = new Map(
    relayables.flatMap(({ entity }) => {
      const from = sourceOf(entity.parent_guid)
      const parent = { type: types[readParentKind(entity)], guid: entity.parent_guid }
      return from === undefined ? [] : [[buildParentKey(entity), { ...parent, from }] as const]
    }),
  )
  await context.fetches?.fetchAll([...fetchRequests.values()], context.signal)
}
