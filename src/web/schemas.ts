import { type Static, type TSchema, Type } from 'typebox'

/** A value that may be missing and then says so: the key is always there. */
function nullable<Schema extends TSchema>(schema: Schema) {
  return Type.Unsafe<Static<Schema> | null>({ ...schema, type: [Reflect.get(schema, 'type'), 'null'] })
}

export const ErrorBody = Type.Object(
  {
    code: Type.Integer({ description: 'The HTTP status once more.' }),
    message: Type.String({ description: 'For people to read. Its wording may change at any time.' }),
    error: Type.Optional(Type.String({ description: 'With 401: the OAuth error code.' })),
    error_description: Type.Optional(Type.String({ description: 'With 401: the OAuth error in words.' })),
  },
  { $id: 'Error', description: 'Every error has this body.' },
)

const Url = Type.String({ format: 'uri', description: 'Absolute.' })

const Avatar = Type.Object(
  { large: Url, medium: Url, small: Url, raw: Url },
  { description: 'The same picture for everybody who has none.' },
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
  { description: 'What a person says about themselves.' },
)
