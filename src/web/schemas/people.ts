import { Type } from 'typebox'
import { Url } from './formats.js'
import { nullable } from './references.js'

const Avatar = Type.Object(
  { large: Url, medium: Url, small: Url, raw: Url },
  { description: 'People without a picture get the default one.' },
)

export const PersonSummary = Type.Object(
  {
    guid: Type.String({ description: 'Identifies the object on every pod; never changes.' }),
    network_id: Type.String({ description: 'The address of the person, as `alice@pod.example`.' }),
    diaspora_id: Type.String({ description: 'The same as `network_id`.' }),
    name: Type.String({ description: 'The name to show: first and last name, or the address if both are blank.' }),
    avatar: Url,
  },
  { $id: 'PersonSummary', description: 'A person, in short.' },
)

const unreadCount = (meaning: string, scope: string) =>
  Type.Optional(
    Type.Integer({
      description: `${meaning}; no more than 1 000 are counted. Absent without the scope \`${scope}\`.`,
    }),
  )

const unreadCounts = {
  unread_notifications: unreadCount('Unread notifications', 'notifications'),
  unread_conversations: unreadCount('Conversations with unread messages', 'conversations'),
  unread_messages: unreadCount('Unread messages in these conversations', 'conversations'),
}

export const OwnProfile = Type.Object(
  {
    guid: Type.String({ description: 'Identifies the object on every pod; never changes.' }),
    network_id: Type.String({ description: 'The address of the person, as `alice@pod.example`.' }),
    diaspora_id: Type.String({ description: 'The same as `network_id`.' }),
    name: Type.String({ description: 'The name to show: first and last name, or the address if both are blank.' }),
    searchable: Type.Boolean({ description: 'Whether the person can be found by search.' }),
    show_profile_info: Type.Boolean({
      description: 'Whether birthday, gender, location and bio are public.',
    }),
    nsfw: Type.Boolean({ description: 'Whether the posts of this person are marked as not safe for work.' }),
    birthday: nullable(Type.String({ description: '`YYYY-MM-DD`; the year 1004 means an unknown year.' })),
    gender: nullable(Type.String()),
    location: nullable(Type.String()),
    bio: nullable(Type.String({ description: 'Markdown.' })),
    avatar: Avatar,
    tags: Type.Array(Type.String(), { description: 'Without `#`, in the order of the profile.' }),
    ...unreadCounts,
  },
  { $id: 'OwnProfile', description: 'Your own profile.' },
)

/** Fields that the own profile and the profile of another person share. */
const { guid, network_id, diaspora_id, name, avatar, tags, searchable, show_profile_info, nsfw } = OwnProfile.properties
const { birthday, gender, location, bio } = OwnProfile.properties
const details = { birthday, gender, location, bio }

export const OtherPerson = Type.Object(
  {
    guid,
    network_id,
    diaspora_id,
    name,
    avatar,
    tags,
    ...Type.Partial(Type.Object(details)).properties,
    ...Type.Partial(Type.Object({ searchable, show_profile_info, nsfw })).properties,
    blocked: Type.Boolean({ description: 'Whether you block the person.' }),
    relationship: nullable(
      Type.Object(
        {
          receiving: Type.Boolean({ description: 'Whether you share with the person.' }),
          sharing: Type.Boolean({ description: 'Whether the person shares with you.' }),
        },
        { description: 'Null unless the token has the scope `contacts:read`.' },
      ),
    ),
    aspects: nullable(
      Type.Array(Type.Object({ id: Type.Integer(), name: Type.String() }), {
        description: 'Your aspects that contain the person. Null unless the token has the scope `contacts:read`.',
      }),
    ),
  },
  {
    $id: 'Person',
    description:
      'A person as you may see them. `birthday`, `gender`, `location` and `bio` are present only if the profile is public or the person shares with you; settings only in your own profile.',
  },
)
