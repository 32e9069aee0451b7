import { Type } from 'typebox'
import { Timestamp } from './formats.js'
import { Moderation } from './moderation/moderation.js'
import { PersonSummary } from './people.js'
import { refTo } from './references.js'

const newCommentFields = {
  guid: Type.String({ description: 'Identifies the object on every pod; never changes.' }),
  created_at: Timestamp,
  author: refTo(PersonSummary),
  body: Type.String({ description: 'Markdown; mentions are written `@{alice@pod.example}`.' }),
  mentioned_people: Type.Array(refTo(PersonSummary)),
  moderation: Type.Optional(Moderation),
}

const readCommentFields = {
  interactions: Type.Object({
    liked: Type.Boolean({ description: 'Whether you like the comment.' }),
    likes_count: Type.Integer(),
  }),
  reported: Type.Boolean({ description: 'Whether you have reported the comment.' }),
}

export const Comment = Type.Object(
  { ...newCommentFields, ...readCommentFields },
  { $id: 'Comment', description: 'A comment.' },
)

export const NewComment = Type.Object(
  { ...newCommentFields, ...Type.Partial(Type.Object(readCommentFields)).properties },
  {
    $id: 'NewComment',
    description:
      'A comment that you have just written. `interactions` and `reported` are present only in the API dialect `diaspora`.',
  },
)
