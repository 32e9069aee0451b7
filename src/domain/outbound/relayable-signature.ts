import type { Comment } from '../../persistence/models/comment.js'
import { Person } from '../../persistence/models/person.js'
import type { Post } from '../../persistence/models/post.js'
import { listElements } from '../../protocol/entities/relayable-elements.js'
import type { Relayable } from '../../protocol/entities/relayables.js'
import type { Services } from '../../services/services.js'
import { loadPrivateKey } from '../accounts/private-keys.js'
import type { Viewer } from '../accounts/viewers.js'

type Signature = Pick<Comment, 'authorSignature' | 'signedElements'>

/**
 * Signs a relayable for the pods that receive it through the author of the post. Empty for the author's own relayables: the
 * signature of the envelope covers them.
 */
export async function signOwnRelayable(
  services: Services,
  viewer: Viewer,
  post: Pick<Post, 'authorId'>,
  entityBy: (author: string) => Relayable,
): Promise<Partial<Signature>> {
  if (post.authorId === viewer.personId) return {}
  const author = await Person.query(services.db).findById(viewer.personId).throwIfNotFound()
  const entity = entityBy(author.address)
  const key = await loadPrivateKey(services, author.id)
  return { authorSignature: await services.crypto.signRelayable(entity, key), signedElements: listElements(entity) }
}
