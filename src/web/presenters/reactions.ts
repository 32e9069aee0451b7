import type { Static } from 'typebox'
import type { ListedReaction } from '../../persistence/interactions/list-reactions.js'
import type { Like, Reshare } from '../schemas/reactions.js'
import { presentPersonSummary } from './people.js'
import type { PodAddresses } from './picture-urls.js'

export function presentLike({ guid, author }: ListedReaction, addresses: PodAddresses): Static<typeof Like> {
  return { guid, author: presentPersonSummary(author, addresses) }
}

export function presentReshare(
  { guid, createdAt, author }: ListedReaction,
  addresses: PodAddresses,
): Static<typeof Reshare> {
  return { guid, created_at: createdAt.toISOString(), author: presentPersonSummary(author, addresses) }
}
