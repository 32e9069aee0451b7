import { loadPrivateKey } from '../../domain/accounts/private-keys.js'
import {
  type EntityAuthor,
  type FetchableEntity,
  findFetchableEntity,
} from '../../persistence/outbound/find-fetchable.js'
import { writeEntity } from '../../protocol/entities/entity-xml.js'
import { type Entity, fetchableKind } from '../../protocol/entities/registry.js'
import { isGuid } from '../../protocol/values.js'
import type { Services } from '../../services/services.js'
import { podOrigin } from '../discovery/pod-origin.js'
import type { EnvelopeCache } from './envelope-cache.js'
import { postEntity } from './post-entities.js'
import { type OutgoingRelayable, relayableEntity } from './relayable-entities.js'
import { signStoredRelayable } from './sign-stored-relayables.js'

/** The answer to a fetch of an entity. */
export type ServedEntity =
  | { readonly kind: 'envelope'; readonly envelope: string }
  | { readonly kind: 'redirect'; readonly url: string }

/** Returns a public entity of a local person in an envelope, and a redirect for a remote one; undefined: not found. */
export async function serveEntity(
  services: Services,
  envelopes: EnvelopeCache,
  type: string,
  guid: string,
): Promise<ServedEntity | undefined> {
  const kind = fetchableKind(type)
  if (kind === undefined || !isGuid(guid)) return undefined
  const fetchableEntity = await findFetchableEntity(services.db, kind, guid)
  // Read before the cache: a deleted entity, or one of a closed account, must disappear at once.
  if (fetchableEntity === undefined || fetchableEntity.postAuthor.isClosed) return undefined

  const owner = ownerOf(fetchableEntity)
  if (owner.isClosed) return undefined
  if (owner.pod !== null) {
    const origin = podOrigin(owner.pod)
    return origin === undefined ? undefined : { kind: 'redirect', url: `${origin}/fetch/${type}/${guid}` }
  }
  const envelope = await envelopes.getOrSign(`${fetchableEntity.record}:${fetchableEntity.guid}`, () =>
    signFetchable(services, fetchableEntity, owner),
  )
  return envelope === undefined ? undefined : { kind: 'envelope', envelope }
}

/** The person who signs the envelope, or whose pod serves it: the author of a local post signs the comments on it. */
function ownerOf({ author, postAuthor }: FetchableEntity): EntityAuthor {
  return postAuthor.pod === null ? postAuthor : author
}

const findEntity: {
  readonly [Kind in FetchableEntity['record']]: (
    services: Services,
    entity: FetchableEntity,
    owner: EntityAuthor,
  ) => Promise<Entity | undefined>
} = {
  post: (services, { guid }) => postEntity(services, guid),
  comment: signedComment,
}

async function signFetchable(
  services: Services,
  fetchable: FetchableEntity,
  owner: EntityAuthor,
): Promise<string | undefined> {
  const entity = await findEntity[fetchable.record](services, fetchable, owner)
  if (entity === undefined) return undefined
  return services.crypto.signEnvelope(
    writeEntity(entity),
    owner.address,
    await loadPrivateKey(services, owner.personId),
  )
}

async function signedComment(
  services: Services,
  { guid, author }: FetchableEntity,
  owner: EntityAuthor,
): Promise<OutgoingRelayable | undefined> {
  const entity = await relayableEntity(services, 'comment', guid)
  const { personId: id } = author
  const signer = { id, isLocal: author.pod === null, isSigner: id === owner.personId }
  return entity && signStoredRelayable(services, services.db, entity, signer)
}
