import { setImmediate as nextTurn } from 'node:timers/promises'
import type { Knex } from 'knex'
import { findUserBlocks } from '../../../persistence/archives/imported-people.js'
import { findUnsignedRelayables, storeSignatures } from '../../../persistence/interactions/kept-signatures.js'
import { RELAYABLE_KINDS } from '../../../protocol/entities/registry.js'
import { verifyRelayable } from '../../../protocol/signatures/relayable-signature.js'
import { parseStoredKey } from '../../inbound/find-signers.js'
import { type OutgoingRelayable, relayableEntities } from '../../outbound/relayable-entities.js'
import { type FoundPerson, isBlockedHere } from '../lookups/people-finder.js'
import { BatchResults, type ImportContext, type ListImporter } from './import-context.js'
import {
  type ArchivedRelayable,
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

interface OthersRelayable extends ReadyRelayable {
  /** The relayable is stored, but without its signature. */
  readonly isStored?: true
}

/**
 * What others wrote under the owner's posts, with the signatures by which other pods accept it. The keys in the archive do not count:
 * its owner could have written them.
 */
export function othersRelayableImporter(list: 'others_comments' | 'others_reactions'): ListImporter<OthersRelayable> {
  return {
    section: SECTION,
    list,

    async prepare(context, items) {
      const results = new BatchResults<OthersRelayable>(SECTION)
      const { fresh, present, authors } = await leaveOutStored(
        context,
        readRelayables(context, items, results),
        results,
      )
      const placedRelayables = await leaveOutForeignParents(context, fresh, results)
      const people = await context.people.find(
        placedRelayables.map(({ author }) => author),
        context.signal,
      )
      const blocks = await findUserBlocks(context.services.db, context.user.userId)
      const verify = openVerification()
      for (const each of placedRelayables) {
        const reason = faultOfAuthor(each, people.get(each.author), blocks)
        if (reason !== undefined) {
          results.refuse(each, reason)
          continue
        }
        const signedRelayable = await verify(each, people.get(each.author))
        if (signedRelayable === undefined) results.refuse(each, 'signature_wrong')
        else results.accept(signedRelayable)
      }
      for (const { entity } of results.ready) {
        if (entity.type === 'comment') context.planned?.comments.add(entity.guid)
      }
      // A check counts what is ready as importable.
      if (context.importId === undefined) return results
      for (const each of await findWithoutSignature(context, present)) {
        const signedRelayable = await verify(each, authors.get(each.author))
        if (signedRelayable !== undefined) results.accept({ ...signedRelayable, isStored: true })
      }
      return results
    },

    async store(context, transaction, ready) {
      await addSignatures(
        transaction,
        ready.filter(({ isStored }) => isStored),
      )
      return storeRelayables(
        context,
        transaction,
        SECTION,
        ready.filter(({ isStored }) => !isStored),
      )
    },
  }
}

async function leaveOutStored(
  context: ImportContext,
  relayables: readonly ReadyRelayable[],
  results: BatchResults<OthersRelayable>,
) {
  const existingAuthors = await findStoredRelayables(context.services.db, relayables)
  const authors = await context.people.find(
    relayables.filter(({ ref }) => existingAuthors.has(ref)).map(({ author }) => author),
    context.signal,
  )
  const newRelayables: ReadyRelayable[] = []
  const present: ReadyRelayable[] = []
  for (const each of relayables) {
    const existingAuthor = existingAuthors.get(each.ref)
    const author = authors.get(each.author)
    if (existingAuthor === undefined) newRelayables.push(each)
    else if (
      existingAuthor === each.author ||
      (author?.state === 'found' && author.newest.address === existingAuthor)
    ) {
      results.recordPresent(each)
      present.push(each)
    } else results.refuse(each, 'guid_taken')
  }
  return { fresh: newRelayables, present, authors }
}

/**
 * What this pod received while the post belonged to another pod is stored without a signature. The archive has it: without it, other pods
 * would not accept the relayable from this pod, nor from the next archive of the account.
 */
async function findWithoutSignature(
  { services }: ImportContext,
  present: readonly ReadyRelayable[],
): Promise<readonly ReadyRelayable[]> {
  const sameRelayables: ReadyRelayable[] = []
  for (const kind of RELAYABLE_KINDS) {
    const guids = present.filter(({ entity }) => entity.type === kind).map(({ ref }) => ref)
    const unsignedGuids = await findUnsignedRelayables(services.db, kind, guids)
    const storedEntities = new Map(
      (await relayableEntities(services, kind, unsignedGuids)).map((entity) => [entity.guid, entity]),
    )
    sameRelayables.push(
      ...present.filter(({ entity, ref }) => entity.type === kind && isSameContent(entity, storedEntities.get(ref))),
    )
  }
  return sameRelayables
}

/** An author can sign two contents with one guid: only the signature of the stored one counts. */
function isSameContent(archived: ArchivedRelayable, stored: OutgoingRelayable | undefined): boolean {
  if (archived.parent_guid !== stored?.parent_guid) return false
  switch (archived.type) {
    case 'comment':
      return stored.type === 'comment' && stored.text === archived.text
    case 'like':
      return (
        stored.type === 'like' && stored.parent_type === archived.parent_type && stored.positive === archived.positive
      )
    case 'poll_participation':
      return stored.type === 'poll_participation' && stored.poll_answer_guid === archived.poll_answer_guid
  }
}

async function addSignatures(transaction: Knex.Transaction, relayables: readonly OthersRelayable[]): Promise<void> {
  for (const kind of RELAYABLE_KINDS) {
    const signatures = relayables.flatMap(({ entity: { type, guid }, signed }) => {
      if (type !== kind || signed?.signature === undefined) return []
      return [{ guid, signature: signed.signature, elements: signed.elements }]
    })
    await storeSignatures(transaction, kind, signatures)
  }
}

async function leaveOutForeignParents(
  context: ImportContext,
  relayables: readonly ReadyRelayable[],
  results: BatchResults<OthersRelayable>,
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
  if (isBlockedHere(author.newest)) return 'pod_blocked'
  if (blocks.has(author.newest.id)) return 'blocked'
  return (each.entity.author_signature ?? '') === '' ? 'signature_missing' : undefined
}

/** Verifies one relayable after the other; after some of them, other work of this process has its turn. */
function openVerification() {
  let verifiedCount = 0
  return async (each: ReadyRelayable, author: FoundPerson | undefined) => {
    verifiedCount += 1
    if (verifiedCount % VERIFICATION_BATCH_SIZE === 0) await nextTurn()
    return verifySignature(each, author)
  }
}

/** Verifies with the key of the network ID in the entity; the newest identity of the author becomes the author. */
function verifySignature(each: ReadyRelayable, author: FoundPerson | undefined): ReadyRelayable | undefined {
  if (author?.state !== 'found') return undefined
  const key = parseStoredKey(author.person.publicKey)
  const { entity } = each
  if (key === undefined || entity.elements === undefined || !verifyRelayable(entity, key)) return undefined
  const signedParts = { signature: entity.author_signature, elements: entity.elements }
  return { ...each, author: author.newest.address, signed: signedParts }
}
