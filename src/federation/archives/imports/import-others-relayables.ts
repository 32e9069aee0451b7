import { setImmediate as nextTurn } from 'node:timers/promises'
import { findUserBlocks } from '../../../persistence/archives/imported-people.js'
import { verifyRelayable } from '../../../protocol/signatures/relayable-signature.js'
import { parsePublicKey } from '../../inbound/find-signers.js'
import type { FoundPerson } from '../lookups/people-finder.js'
import { BatchResults, type ImportContext, type ListImporter } from './import-context.js'
import {
  buildParentKey,
  findParentsOf,
  findStoredRelayables,
  isPlannedParent,
  type ReadyRelayable,
  readRelayables,
  storeRelayables,
} from './import-relayables.js'

const SECTION = 'others_relayables'
/** Signatures that are verified before other work of this process has its turn. */
const VERIFICATION_BATCH_SIZE = 20

/**
 * What others wrote under the owner's posts, with the signatures by which other pods accept it. The keys in the archive do not count:
 * its owner could have written them.
 */
export function othersRelayableImporter(list: 'others_comments' | 'others_reactions'): ListImporter<ReadyRelayable> {
  return {
    section: SECTION,
    list,

    async prepare(context, items) {
      const results = new BatchResults<ReadyRelayable>(SECTION)
      const fresh = await leaveOutStored(context, readRelayables(context, items, results), results)
      const placed = await leaveOutForeignParents(context, fresh, results)
      const people = await context.people.find(
        placed.map(({ author }) => author),
        context.signal,
      )
      const blocks = await findUserBlocks(context.services.db, context.user.userId)
      let verified = 0
      for (const each of placed) {
        const reason = faultOfAuthor(each, people.get(each.author), blocks)
        if (reason !== undefined) {
          results.refuse(each, reason)
          continue
        }
        verified += 1
        if (verified % VERIFICATION_BATCH_SIZE === 0) await nextTurn()
        const signed = verify(each, people.get(each.author))
        if (signed === undefined) results.refuse(each, 'signature_wrong')
        else results.accept(signed)
      }
      for (const { entity } of results.ready) {
        if (entity.type === 'comment') context.planned?.comments.add(entity.guid)
      }
      return results
    },

    store: async (context, transaction, ready) => storeRelayables(context, transaction, SECTION, ready),
  }
}

async function leaveOutStored(
  context: ImportContext,
  relayables: readonly ReadyRelayable[],
  results: BatchResults<ReadyRelayable>,
): Promise<readonly ReadyRelayable[]> {
  const stored = await findStoredRelayables(context.services.db, relayables)
  const authors = await context.people.find(
    relayables.filter(({ ref }) => stored.has(ref)).map(({ author }) => author),
    context.signal,
  )
  return relayables.filter((each) => {
    const holder = stored.get(each.ref)
    if (holder === undefined) return true
    const author = authors.get(each.author)
    const isSame = holder === each.author || (author?.state === 'found' && author.newest.address === holder)
    if (isSame) results.recordPresent(each)
    else results.refuse(each, 'guid_taken')
    return false
  })
}

async function leaveOutForeignParents(
  context: ImportContext,
  relayables: readonly ReadyRelayable[],
  results: BatchResults<ReadyRelayable>,
): Promise<readonly ReadyRelayable[]> {
  const parents = await findParentsOf(context.services.db, relayables)
  return relayables.filter((each) => {
    const parent = parents.get(buildParentKey(each.entity))
    const isOwn =
      parent === undefined ? isPlannedParent(context, each.entity) : isOwnThreadPost(context, parent.threadAuthorId)
    if (!isOwn) results.refuse(each, 'parent_missing')
    return isOwn
  })
}

/** Whether the thread post belongs to the account. During a check, posts that this pod knows still belong to the old account. */
function isOwnThreadPost({ user, oldPersonId }: ImportContext, authorId: number): boolean {
  return authorId === user.personId || authorId === oldPersonId
}

function faultOfAuthor(each: ReadyRelayable, author: FoundPerson | undefined, blocks: ReadonlySet<number>) {
  if (author === undefined || author.state === 'refused') {
    return author?.reason === 'pod_blocked' || author?.reason === 'over_limit' ? author.reason : 'author_unknown'
  }
  if (author.person.podId === null) return 'local_author'
  if (blocks.has(author.newest.id)) return 'blocked'
  return (each.entity.author_signature ?? '') === '' ? 'signature_missing' : undefined
}

/** Verifies with the key of the network ID in the entity; the newest identity of the author becomes the author. */
function verify(each: ReadyRelayable, author: FoundPerson | undefined): ReadyRelayable | undefined {
  if (author?.state !== 'found') return undefined
  const key = parsePublicKey(author.person.publicKey)
  const { entity } = each
  if (key === undefined || entity.elements === undefined || !verifyRelayable(entity, key)) return undefined
  const signed = { signature: entity.author_signature, elements: entity.elements }
  return { ...each, author: author.newest.address, signed }
}
