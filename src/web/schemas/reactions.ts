import { Type } from 'typebox'
import { Timestamp } from './formats.js'
import { PersonSummary } from './people.js'
import { refTo } from './references.js'

export const Like = Type.Object(
  { guid: Type.String({ description: 'Identifies the like on every pod.' }), author: refTo(PersonSummary) },
  { $id: 'Like', description: 'A like of a post or a comment.' },
)

export const Reshare = Type.Object(
  {
    guid: Type.String({ description: 'The guid of the reshare, which is a post.' }),
    created_at: Timestamp,
    author: refTo(PersonSummary),
  },
  { $id: 'Reshare', description: 'A reshare of a post.' },
)
