import { Type } from 'typebox'
import { PersonSummary, refTo, Timestamp } from './common.js'

const written = {
  guid: Type.String({ description: 'The same on every pod, and for ever.' }),
  created_at: Timestamp,
  author: refTo(PersonSummary),
  body: Type.String({ description: 'Markdown; mentions are written `@{alice@pod.example}`.' }),
  mentioned_people: Type.Array(refTo(PersonSummary)),
}

const received = {
  interactions: Type.Object({
    liked: Type.Boolean({ description: 'Whether you like it.' }),
    likes_count: Type.Integer(),
  }),
  reported: Type.Boolean({ description: 'Whether you have reported it.' }),
}

export const Comment = Type.Object({ ...written, ...received }, { $id: 'Comment', description: 'A comment.' })

export const NewComment = Type.Object(
  { ...written, ...Type.Partial(Type.Object(received)).properties },
  {
    $id: 'NewComment',
    description:
      'A comment you have just written. `interactions` and `reported` are there only in the dialect `diaspora`.',
  },
)
