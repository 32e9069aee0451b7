import { loadPrivateKey } from '../../domain/accounts/private-keys.js'
import {
  type EntityAuthor,
  type FetchableEntity,
  type FetchableKind,
  findFetchableEntity,
} from '../../persistence/outbound/find-fetchable.js'
import type { Pod } from '../../pod/pod.js'
import { writeEntity } from '../../protocol/entities/registry.js'
import { isGuid } from '../../protocol/values.js'
import { podOrigin } from '../discovery/pod-origin.js'
import type { EnvelopeCache } from '../inbound/envelope-cache.js'
import { postEntity } from './post-entities.js'
import { commentEntity } from './relayable-entities.js'

/** What another pod gets that asks for an entity; undefined: nothing, whatever the reason. */
export type Served =
  | { readonly kind: 'envelope'; readonly envelope: string }
  | { readonly kind: 'redirect'; readonly url: string }

const kinds: ReadonlyMap<string, FetchableKind> = new Map([
  ['post', 'post'],
  ['status_message', 'post'],
  ['reshare', 'post'],
  ['comment', 'comment'],
  ['poll', 'poll'],
])

/** What this name of a type finds; undefined: things of this type are not given away one by one. */
export function fetchableKind(type: string): FetchableKind | undefined {
  return kinds.get(type)
}

/** Public things of our people in an envelope; for those of others, the way to whom they belong. */
export async function serveEntity(
  pod: Pod,
  envelopes: EnvelopeCache,
  type: string,
  guid: string,
): Promise<Served | undefined> {
  const kind = fetchableKind(type)
  if (kind === undefined || !isGuid(guid)) return undefined
  const found = await findFetchableEntity(pod.db, kind, guid)
  // Asked each time: what is deleted, or whose author has left, is gone at once.
  if (found === undefined || found.postAuthor.closed) return undefined

  const owner = ownerOf(found)
  if (owner.closed) return undefined
  if (owner.pod !== null) {
    const origin = podOrigin(owner.pod)
    return origin === undefined ? undefined : { kind: 'redirect', url: `${origin}/fetch/${type}/${guid}` }
  }
  const envelope = await envelopes.of(`${found.record}:${found.guid}`, () => sealed(pod, found, owner))
  return envelope === undefined ? undefined : { kind: 'envelope', envelope }
}

/** Who signs it, or whose pod is asked: other pods take a comment from the author of its post, whoever wrote it. */
function ownerOf({ author, postAuthor }: FetchableEntity): EntityAuthor {
  return postAuthor.pod === null ? postAuthor : author
}

async function sealed(pod: Pod, { record, guid }: FetchableEntity, owner: EntityAuthor): Promise<string | undefined> {
  const entity = await (record === 'post' ? postEntity(pod, guid) : commentEntity(pod, guid))
  if (entity === undefined) return undefined
  return pod.crypto.sealEnvelope(writeEntity(entity), owner.address, await loadPrivateKey(pod, owner.personId))
}
