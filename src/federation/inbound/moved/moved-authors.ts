import { findNewestAddresses } from '../../../persistence/people/moved-people.js'
import { isRelayable, type ReceivableEntity } from '../../../protocol/entities/registry.js'
import type { Services } from '../../../services/services.js'
import type { ResolvedMessage, VerifiedMessage } from '../batch.js'
import { findSigners } from '../find-signers.js'

/**
 * Relayables of people who have moved, from pods that do not know the move yet. They were verified with the old key, and are stored as
 * those of the newest identity. The signed texts stay as they are. What the old identity sends itself is ignored later.
 */
export async function followMovedAuthors(
  { db }: Pick<Services, 'db'>,
  messages: readonly VerifiedMessage<ReceivableEntity>[],
): Promise<readonly VerifiedMessage<ReceivableEntity>[]> {
  const isLate = ({ entity, author, sender }: VerifiedMessage<ReceivableEntity>) =>
    isRelayable(entity) && author?.isClosed === true && sender !== entity.author
  const late = messages.filter(isLate)
  if (late.length === 0) return messages
  const newest = await findNewestAddresses(
    db,
    late.map(({ entity }) => entity.author),
  )
  const signers = new Map((await findSigners(db, [...newest.values()])).map((signer) => [signer.address, signer]))
  return messages.map((message) => {
    const author = isLate(message) ? signers.get(newest.get(message.entity.author) ?? '') : undefined
    if (author === undefined) return message
    return {
      ...message,
      author,
      movedFrom: message.entity.author,
      entity: { ...message.entity, author: author.address },
    }
  })
}

/** Reshares that name the author of their root by an address from which that author has moved. */
export async function followMovedRootAuthors(
  { db }: Pick<Services, 'db'>,
  messages: readonly ResolvedMessage[],
): Promise<readonly ResolvedMessage[]> {
  const oldAuthorOf = ({ entity, references: { threadPost } }: ResolvedMessage) =>
    entity.type === 'reshare' && threadPost !== undefined && entity.root_author !== threadPost.author
      ? entity.root_author
      : undefined
  const olds = messages.flatMap((message) => oldAuthorOf(message) ?? [])
  if (olds.length === 0) return messages
  const newest = await findNewestAddresses(db, olds)
  return messages.map((message) => {
    const { entity, references } = message
    const author = newest.get(oldAuthorOf(message) ?? '')
    if (entity.type !== 'reshare' || author === undefined || author !== references.threadPost?.author) return message
    return { ...message, entity: { ...entity, root_author: author } }
  })
}
