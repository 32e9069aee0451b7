import { type Static, type TSchema, Type } from 'typebox'
import { ERROR_REASONS, type ErrorReason } from '../server/error-reasons.js'

/** A value that may be missing and then says so: the key is always there. */
export function nullable<Schema extends TSchema>(schema: Schema) {
  return Type.Unsafe<Static<Schema> | null>({ ...schema, type: [Reflect.get(schema, 'type'), 'null'] })
}

/** Stands for a schema that has a name: the document tells it once. */
export function refTo<Schema extends TSchema>(schema: Schema) {
  return Type.Unsafe<Static<Schema>>({ $ref: `${Reflect.get(schema, '$id')}#` })
}

export const ErrorReasonName = Type.Enum(Object.keys(ERROR_REASONS) as ErrorReason[], {
  $id: 'ErrorReason',
  description:
    'What is wrong, for programs to compare. New reasons may be added; existing ones are never renamed or removed.',
})

export const ErrorBody = Type.Object(
  {
    code: Type.Integer({ description: 'The HTTP status.' }),
    message: Type.String({ description: 'For people to read. The wording may change at any time.' }),
    reason: refTo(ErrorReasonName),
    field: Type.Optional(
      Type.String({
        description: 'The field or parameter that is wrong, as `poll.question`; the first one of several.',
      }),
    ),
    fields: Type.Optional(
      Type.Array(Type.String(), {
        minItems: 2,
        description: 'All fields or parameters that are wrong, if there are several.',
      }),
    ),
    error: Type.Optional(Type.String({ description: 'With 401 and 429: the OAuth error code.' })),
    error_description: Type.Optional(Type.String({ description: 'With 401 and 429: the OAuth error in words.' })),
  },
  { $id: 'Error', description: 'The body of every error.' },
)

export const Timestamp = Type.String({ format: 'date-time', description: 'UTC, with three decimals.' })

export const Url = Type.String({ format: 'uri', description: 'Absolute.' })

const Avatar = Type.Object(
  { large: Url, medium: Url, small: Url, raw: Url },
  { description: 'The same picture for everybody who has none.' },
)

export const PersonSummary = Type.Object(
  {
    guid: Type.String({ description: 'The same on every pod, and for ever.' }),
    network_id: Type.String({ description: 'The address, as `alice@pod.example`.' }),
    diaspora_id: Type.String({ description: 'The same as `network_id`.' }),
    name: Type.String({ description: 'What to show: first and last name, or the address where both are blank.' }),
    avatar: Url,
  },
  { $id: 'PersonSummary', description: 'Somebody, wherever they are named.' },
)

export const OwnProfile = Type.Object(
  {
    guid: Type.String({ description: 'The same on every pod, and for ever.' }),
    network_id: Type.String({ description: 'The address, as `alice@pod.example`.' }),
    diaspora_id: Type.String({ description: 'The same as `network_id`.' }),
    name: Type.String({ description: 'What to show: first and last name, or the address where both are blank.' }),
    searchable: Type.Boolean({ description: 'Whether others find this person by name.' }),
    show_profile_info: Type.Boolean({
      description: 'Whether birthday, gender, location and bio are there for everybody.',
    }),
    nsfw: Type.Boolean({ description: 'Whether the posts of this person are hidden until somebody asks for them.' }),
    birthday: nullable(Type.String({ description: '`YYYY-MM-DD`; the year 1004 means that the year is not told.' })),
    gender: nullable(Type.String()),
    location: nullable(Type.String()),
    bio: nullable(Type.String({ description: 'Markdown.' })),
    avatar: Avatar,
    tags: Type.Array(Type.String(), { description: 'Without `#`, in the order of the profile.' }),
  },
  { $id: 'OwnProfile', description: 'What a person says about themselves.' },
)

/** What both profiles say about the same facts. */
const { guid, network_id, diaspora_id, name, avatar, tags, searchable, show_profile_info, nsfw, ...details } =
  OwnProfile.properties

export const OtherPerson = Type.Object(
  {
    ...{ guid, network_id, diaspora_id, name, avatar, tags },
    ...Type.Partial(Type.Object(details)).properties,
    ...Type.Partial(Type.Object({ searchable, show_profile_info, nsfw })).properties,
    blocked: Type.Boolean({ description: 'Whether you block this person.' }),
    relationship: nullable(
      Type.Object(
        {
          receiving: Type.Boolean({ description: 'You share with this person.' }),
          sharing: Type.Boolean({ description: 'This person shares with you.' }),
        },
        { description: 'Null unless the token has the scope `contacts:read`.' },
      ),
    ),
    aspects: nullable(
      Type.Array(Type.Object({ id: Type.Integer(), name: Type.String() }), {
        description:
          'Those of your aspects that this person is in. Null unless the token has the scope `contacts:read`.',
      }),
    ),
  },
  {
    $id: 'Person',
    description:
      'Somebody, as you may see them. Birthday, gender, location and bio are there only if the person shows them to everybody or shares with you; settings only for yourself.',
  },
)

export const Aspect = Type.Object(
  {
    id: Type.Integer(),
    name: Type.String(),
    order: Type.Integer({ description: 'Its place among your aspects.' }),
  },
  { $id: 'Aspect', description: 'A group in which you keep people you share with.' },
)
