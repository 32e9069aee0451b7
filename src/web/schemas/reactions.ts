import { Type } from 'typebox'
import { PersonSummary, refTo, Timestamp } from './common.js'

export const Like = Type.Object(
  { guid: Type.String({ description: 'The same on every pod.' }), author: refTo(PersonSummary) },
  { $id: 'Like', description: 'That somebody likes a post or a comment.' },
)

export const Reshare = Type.Object(
  {
    guid: Type.String({ description: 'Of the post that shows it.' }),
    created_at: Timestamp,
    author: refTo(PersonSummary),
  },
  { $id: 'Reshare', description: 'That somebody has reshared a post.' },
)
