import type { Static } from 'typebox'
import type { ListedReaction } from '../../persistence/interactions/list-reactions.js'
import type { Like, Reshare } from '../schemas/reactions.js'
import { presentPersonSummary } from './people.js'

export function presentLike({ guid, author }: ListedReaction, podUrl: string): Static<typeof Like> {
  return { guid, author: presentPersonSummary(author, podUrl) }
}

export function presentReshare({ guid, createdAt, author }: ListedReaction, podUrl: string): Static<typeof Reshare> {
  return { guid, created_at: createdAt.toISOString(), author: presentPersonSummary(author, podUrl) }
}
