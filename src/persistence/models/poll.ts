import type { SignedElements } from './comment.js'
import { Model } from './model.js'

export class Poll extends Model {
  static override tableName = 'polls'

  declare id: number
  declare guid: string
  declare postId: number
  declare question: string

  declare answers?: PollAnswer[]
  declare votes?: PollParticipation[]

  static override relationMappings = () => ({
    answers: {
      relation: Model.HasManyRelation,
      modelClass: PollAnswer,
      join: { from: 'polls.id', to: 'poll_answers.pollId' },
    },
    votes: {
      relation: Model.HasManyRelation,
      modelClass: PollParticipation,
      join: { from: 'polls.id', to: 'poll_participations.pollId' },
    },
  })
}

export class PollAnswer extends Model {
  static override tableName = 'poll_answers'

  declare id: number
  declare guid: string
  declare pollId: number
  declare position: number
  declare answer: string
  declare voteCount: number
}

/** A vote: one per person and poll. */
export class PollParticipation extends Model {
  static override tableName = 'poll_participations'
  static override jsonAttributes = ['signedElements']

  declare id: number
  declare guid: string
  declare pollId: number
  declare pollAnswerId: number
  declare authorId: number
  declare authorSignature: string | null
  declare signedElements: SignedElements | null
  declare createdAt: Date
}
