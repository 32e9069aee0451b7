import { Type } from 'typebox'
import { nullable, PersonSummary, refTo, Timestamp, Url } from './common.js'

export const Picture = Type.Object(
  {
    dimensions: Type.Object(
      { height: nullable(Type.Integer()), width: nullable(Type.Integer()) },
      { description: 'Null while nobody knows.' },
    ),
    sizes: Type.Object({ raw: Url, large: Url, medium: Url, small: Url }),
  },
  { $id: 'Picture', description: 'A photo as part of a post.' },
)

export const Photo = Type.Object(
  {
    guid: Type.String(),
    created_at: Timestamp,
    post: Type.Optional(
      Type.String({ description: 'The guid of the post it is part of; without one, the key is not there.' }),
    ),
    ...Picture.properties,
  },
  { $id: 'Photo', description: 'A photo.' },
)

export const Poll = Type.Object(
  {
    guid: Type.String(),
    question: Type.String(),
    participation_count: Type.Integer({ description: 'How many have voted.' }),
    already_participated: Type.Boolean({ description: 'Whether you have voted.' }),
    poll_answers: Type.Array(
      Type.Object({
        id: Type.Integer({ description: 'What a vote names.' }),
        answer: Type.String(),
        vote_count: Type.Integer(),
        own_answer: Type.Boolean({ description: 'Whether you have voted for it.' }),
      }),
      { description: 'In the order of the author.' },
    ),
  },
  { $id: 'Poll', description: 'A question with answers to choose from.' },
)

const post = {
  guid: Type.String({ description: 'The same on every pod, and for ever.' }),
  created_at: Timestamp,
  public: Type.Boolean({ description: 'Whether everybody may see it.' }),
  post_type: Type.Union([Type.Literal('StatusMessage'), Type.Literal('Reshare')]),
  title: Type.String({ description: 'Its heading or its beginning, without Markdown.' }),
  body: Type.String({ description: 'Markdown; mentions are written `@{alice@pod.example}`.' }),
  provider_display_name: Type.Optional(Type.String({ description: 'The app it was written with, if it tells.' })),
  nsfw: Type.Boolean({ description: 'Whether to show it only to those who ask for it.' }),
  author: refTo(PersonSummary),
  interaction_counters: Type.Object({ comments: Type.Integer(), likes: Type.Integer(), reshares: Type.Integer() }),
  own_interaction_state: Type.Object(
    {
      liked: Type.Boolean(),
      reshated: Type.Boolean({ description: 'The same as `reshared`.' }),
      reshared: Type.Boolean(),
      subscribed: Type.Boolean({ description: 'Whether you hear of what happens under it.' }),
      reported: Type.Boolean(),
    },
    { description: 'What you have done with it.' },
  ),
  mentioned_people: Type.Array(refTo(PersonSummary)),
  photos: Type.Array(refTo(Picture)),
  location: Type.Optional(
    Type.Object(
      { address: Type.String(), lat: Type.Number(), lng: Type.Number() },
      { description: 'Where it was written.' },
    ),
  ),
  poll: Type.Optional(refTo(Poll)),
}

export const Root = Type.Object(post, { $id: 'Root', description: 'The post that a reshare shows in the end.' })

export const Post = Type.Object(
  { ...post, root: Type.Optional(refTo(Root)) },
  {
    $id: 'Post',
    description:
      'A post. A reshare shows the body, title, photos, mentions, place and poll of its root; counters and own state are its own. Once the root is gone, the body is empty and the key `root` not there.',
  },
)
