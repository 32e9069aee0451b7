import { loadPrivateKey } from '../../domain/accounts/private-keys.js'
import { inChunks } from '../../jobs/chunks.js'
import {
  type ArchivedRelayableKind,
  findCreationTimes,
  findPollIds,
  relayablesBelow,
} from '../../persistence/archives/archived-content.js'
import { findLocalWriters } from '../../persistence/interactions/kept-signatures.js'
import { type EntityJson, entityToJson, signedEntityToJson } from '../../protocol/entities/entity-json.js'
import type { RelayableKind } from '../../protocol/entities/registry.js'
import type { Services } from '../../services/services.js'
import { commentEntities, likeEntities, type OutgoingRelayable, voteEntities } from '../outbound/relayable-entities.js'
import { addSignature } from '../outbound/sign-stored-relayables.js'

type RelayableDependencies = Pick<Services, 'config' | 'db' | 'crypto' | 'secrets'>

const ENTITIES: Readonly<
  Record<
    ArchivedRelayableKind,
    (source: RelayableDependencies, guids: readonly string[]) => Promise<readonly OutgoingRelayable[]>
  >
> = { comment: commentEntities, like: likeEntities, likeOfComment: likeEntities, vote: voteEntities }

const RELAYABLE_KINDS: Readonly<Record<ArchivedRelayableKind, RelayableKind>> = {
  comment: 'comment',
  like: 'like',
  likeOfComment: 'like',
  vote: 'poll_participation',
}

/** Likes and votes have a time that their entities do not contain. */
type ArchivedRelayable = EntityJson & { readonly created_at?: string }

/** Relayables of the owner of the archive, without signatures: diaspora* signs them again when it imports them. */
export async function archiveOwnRelayables(
  source: RelayableDependencies,
  kind: ArchivedRelayableKind,
  guids: readonly string[],
): Promise<readonly ArchivedRelayable[]> {
  const entities = await ENTITIES[kind](source, guids)
  return withTimes(source, kind, entities, (entity) => {
    const { entity_data, ...rest } = entityToJson(entity)
    const { author_signature: _, ...data } = entity_data
    return { ...rest, entity_data: data }
  })
}

/** Rows that are read at once of each post or comment, so that many comments on many posts are not in memory together. */
const ROWS_OF_PARENT = 100

/** Comments, likes and votes of other people on posts of the owner, at most `limit` in a page. */
export async function* archiveOthersRelayables(
  source: RelayableDependencies,
  query: { readonly postIds: readonly number[]; readonly personId: number; readonly limit: number },
  countLeftOut: (count: number) => void,
): AsyncGenerator<readonly ArchivedRelayable[]> {
  const { postIds, personId, limit } = query
  const below = async function* (kind: ArchivedRelayableKind, parentIds: readonly number[]) {
    const rowQuery = { kind, parentIds, personId, limit: Math.min(limit, ROWS_OF_PARENT) }
    for await (const rows of relayablesBelow(source.db, rowQuery)) yield* inChunks(rows, limit)
  }
  const archive = async (kind: ArchivedRelayableKind, guids: readonly string[]) => {
    const signedEntities = await signMissing(source, kind, await ENTITIES[kind](source, guids))
    countLeftOut(guids.length - signedEntities.length)
    return withTimes(source, kind, signedEntities, signedEntityToJson)
  }

  for await (const comments of below('comment', postIds)) {
    yield await archive('comment', guidsOfOthers(comments))
    for await (const likes of below(
      'likeOfComment',
      comments.map(({ id }) => id),
    )) {
      yield await archive('likeOfComment', guidsOfOthers(likes))
    }
  }
  for (const kind of ['like', 'vote'] as const) {
    const parentIds = kind === 'vote' ? await findPollIds(source.db, postIds) : postIds
    for await (const rows of below(kind, parentIds)) yield await archive(kind, guidsOfOthers(rows))
  }
}

function guidsOfOthers(rows: readonly { readonly guid: string; readonly isOwn: boolean }[]): readonly string[] {
  return rows.filter(({ isOwn }) => !isOwn).map(({ guid }) => guid)
}

async function withTimes<Entity extends OutgoingRelayable>(
  { db }: RelayableDependencies,
  kind: ArchivedRelayableKind,
  entities: readonly Entity[],
  toJson: (entity: Entity) => EntityJson,
): Promise<readonly ArchivedRelayable[]> {
  if (kind === 'comment') return entities.map(toJson)
  const table = kind === 'vote' ? 'poll_participations' : 'likes'
  const times = await findCreationTimes(
    db,
    table,
    entities.map(({ guid }) => guid),
  )
  return entities.map((entity) => {
    const time = times.get(entity.guid)
    return { ...toJson(entity), ...(time && { created_at: time.toISOString() }) }
  })
}

/**
 * Signs what local people wrote below the owner's posts: such relayables have no signature until another pod needs it. The
 * signature is stored. Relayables are left out if this pod no longer has a key of the author.
 */
async function signMissing<Entity extends OutgoingRelayable>(
  source: RelayableDependencies,
  kind: ArchivedRelayableKind,
  entities: readonly Entity[],
): Promise<readonly Entity[]> {
  const unsignedEntities = entities.filter(({ author_signature }) => author_signature === undefined)
  const writers = await findLocalWriters(
    source.db,
    RELAYABLE_KINDS[kind],
    unsignedEntities.map(({ guid }) => guid),
  )

  const signedEntities: Entity[] = []
  for (const entity of entities) {
    if (entity.author_signature !== undefined) signedEntities.push(entity)
    else {
      const writer = writers.get(entity.guid)
      const key = writer === undefined ? undefined : await loadPrivateKey(source, writer.id).catch(() => undefined)
      if (writer !== undefined && key !== undefined) {
        signedEntities.push(await addSignature(source, { ...entity, author: writer.address }, key))
      }
    }
  }
  return signedEntities
}
