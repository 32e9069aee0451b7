import type { Knex } from 'knex'
import { Person, type SignerRow } from '../../../persistence/models/person.js'
import { endsContentOrContact, isRelayable } from '../../../protocol/entities/registry.js'
import { blockedAuthorReason, isInteractionWithLocalPost } from '../authorise.js'
import type { IgnoredMessage, RejectedMessage, ResolvedMessage } from '../batch.js'

interface SortedMessages {
  readonly ready: readonly ResolvedMessage[]
  readonly ignored: readonly IgnoredMessage[]
  /** Interactions of blocked people, which are answered. */
  readonly rejected: readonly RejectedMessage[]
}

/** Separates the messages of people who were blocked, or whose pod was blocked, since their envelopes were opened. */
export async function separateNewlyBlocked(
  transaction: Knex.Transaction,
  messages: readonly ResolvedMessage[],
): Promise<SortedMessages> {
  const addresses = messages.flatMap(({ signer, author }) => [signer.address, author?.address ?? signer.address])
  const people = await Person.findSigners(transaction, [...new Set(addresses)])
  const byAddress = new Map(people.map((person) => [person.address, person]))
  const ready: ResolvedMessage[] = []
  const ignored: IgnoredMessage[] = []
  const rejected: RejectedMessage[] = []
  for (const message of messages) {
    const { inbound, entity, sender } = message
    const block = findNewBlock(message, byAddress)
    if (block === undefined) ready.push(message)
    else if (block === 'pod') {
      ignored.push({ inbound, message, reason: `the pod of ${entity.author} or ${sender} is blocked` })
    } else {
      const list = isRelayable(entity) ? rejected : ignored
      list.push({ inbound, message, fault: 'Moderated', reason: blockedAuthorReason(entity.author) })
    }
  }
  return { ready, ignored, rejected }
}

/** The author of the entity decides; without a known author, the signer. Undefined: neither is blocked. */
function findNewBlock(message: ResolvedMessage, people: ReadonlyMap<string, SignerRow>): 'pod' | 'person' | undefined {
  const { entity, signer, author } = message
  if (endsContentOrContact(entity)) return undefined
  const [signerRow, authorRow] = [people.get(signer.address), author && people.get(author.address)]
  if (authorRow?.isPodBlocked && isInteractionWithLocalPost(message)) return 'person'
  if (signerRow?.isPodBlocked || (isRelayable(entity) && authorRow?.isPodBlocked)) return 'pod'
  return (author === undefined ? signerRow : authorRow)?.isPersonBlocked ? 'person' : undefined
}
