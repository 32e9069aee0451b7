import { Type } from 'typebox'
import { Timestamp, Url } from './formats.js'
import { Moderation } from './moderation/moderation.js'
import { PersonSummary } from './people.js'
import { nullable, refTo } from './references.js'

export const Picture = Type.Object(
  {
    dimensions: Type.Object(
      { height: nullable(Type.Integer()), width: nullable(Type.Integer()) },
      { description: 'Null while unknown.' },
    ),
    sizes: Type.Object({ raw: Url, large: Url, medium: Url, small: Url }),
    alt_text: Type.Optional(
      Type.String({ description: 'What the photo shows, in words; absent if the author has not described it.' }),
    ),
  },
  { $id: 'Picture', description: 'A photo as part of a post.' },
)

export const Photo = Type.Object(
  {
    guid: Type.String(),
    created_at: Timestamp,
    post: Type.Optional(
      Type.String({ description: 'The guid of the post that the photo belongs to; absent without a post.' }),
    ),
    ...Picture.properties,
  },
  { $id: 'Photo', description: 'A photo.' },
)

export const Poll = Type.Object(
  {
    guid: Type.String(),
    question: Type.String(),
    participation_count: Type.Integer({ description: 'The number of votes.' }),
    already_participated: Type.Boolean({ description: 'Whether you have voted.' }),
    poll_answers: Type.Array(
      Type.Object({
        id: Type.Integer({ description: 'The id to vote with.' }),
        answer: Type.String(),
        vote_count: Type.Integer(),
        own_answer: Type.Boolean({ description: 'Whether you have voted for this answer.' }),
      }),
      { description: 'In the order that the author gave them.' },
    ),
  },
  { $id: 'Poll', description: 'A poll of a post.' },
)

const post = {
  guid: Type.String({ description: 'Identifies the object on every pod; never changes.' }),
  created_at: Timestamp,
  public: Type.Boolean({ description: 'Whether the post is public.' }),
  post_type: Type.Union([Type.Literal('StatusMessage'), Type.Literal('Reshare')]),
  title: Type.String({ description: 'The heading or the start of the body, without Markdown.' }),
  body: Type.String({ description: 'Markdown; mentions are written `@{alice@pod.example}`.' }),
  provider_display_name: Type.Optional(
    Type.String({ description: 'The name of the app that wrote the post, if it is known.' }),
  ),
  nsfw: Type.Boolean({ description: 'Whether the post is not safe for work.' }),
  author: refTo(PersonSummary),
  interaction_counters: Type.Object({ comments: Type.Integer(), likes: Type.Integer(), reshares: Type.Integer() }),
  own_interaction_state: Type.Object(
    {
      liked: Type.Boolean(),
      reshated: Type.Boolean({ description: 'The same as `reshared`.' }),
      reshared: Type.Boolean(),
      subscribed: Type.Boolean({ description: 'Whether you are subscribed to the post.' }),
      reported: Type.Boolean(),
    },
    { description: 'Your own interactions with the post.' },
  ),
  mentioned_people: Type.Array(refTo(PersonSummary)),
  photos: Type.Array(refTo(Picture)),
  location: Type.Optional(
    Type.Object(
      { address: Type.String(), lat: Type.Number(), lng: Type.Number() },
      { description: 'The place that the author gave.' },
    ),
  ),
  poll: Type.Optional(refTo(Poll)),
  moderation: Type.Optional(Moderation),
}

export const Root = Type.Object(post, { $id: 'Root', description: 'The original post of a reshare.' })

export const Post = Type.Object(
  { ...post, root: Type.Optional(refTo(Root)) },
  {
    $id: 'Post',
    description:
      'A post. A reshare has the body, title, photos, mentions, location and poll of its root, but its own counters and state. If the root was deleted, `body` is empty and `root` is absent.',
  },
)
