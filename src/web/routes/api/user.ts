import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import { countUnread, type ShownUnreadCounts } from '../../../domain/notifications/unread-counts.js'
import { getOwnProfile, type OwnProfile as StoredOwnProfile } from '../../../domain/people/people.js'
import { changeProfile } from '../../../domain/people/profiles.js'
import { presentOwnProfile, presentUnreadCounts } from '../../presenters/people.js'
import { BooleanField, readBoolean } from '../../schemas/booleans.js'
import { OwnProfile } from '../../schemas/people.js'
import { nullable, refTo } from '../../schemas/references.js'

const changes = Type.Object({
  name: Type.Optional(Type.String({ description: 'At most 32 characters, and no semicolon.' })),
  bio: Type.Optional(nullable(Type.String({ description: 'Markdown, at most 65 535 characters.' }))),
  location: Type.Optional(nullable(Type.String({ description: 'At most 255 characters.' }))),
  gender: Type.Optional(nullable(Type.String({ description: 'At most 255 characters.' }))),
  birthday: Type.Optional(
    nullable(
      Type.String({
        description: '`YYYY-MM-DD`, or a time, of which the day is taken. Null or an empty string clears it.',
      }),
    ),
  ),
  searchable: Type.Optional(BooleanField),
  show_profile_info: Type.Optional(BooleanField),
  nsfw: Type.Optional(BooleanField),
  tags: Type.Optional(Type.Array(Type.String(), { description: 'At most five tags, with or without `#`.' })),
})

export const userRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const present = (profile: StoredOwnProfile, counts: ShownUnreadCounts) => ({
    ...presentOwnProfile(profile, app.services.config),
    ...presentUnreadCounts(counts),
  })

  app.get(
    '/user',
    {
      schema: {
        operationId: 'getOwnProfile',
        tags: ['Own profile'],
        summary: 'Read your own profile',
        description:
          'The profile of the person the token belongs to. `birthday`, `gender`, `location` and `bio` are null unless the token has the scope `profile:read_private` or the profile is public (`show_profile_info`). The counts of what is unread need the scopes `notifications` and `conversations`.',
        response: { 200: refTo(OwnProfile, 'Your profile.') },
      },
      config: { scopes: ['profile'] },
    },
    async ({ services, viewer }) => {
      const [profile, counts] = await Promise.all([getOwnProfile(services, viewer), countUnread(services, viewer)])
      return present(profile, counts)
    },
  )

  app.patch(
    '/user',
    {
      schema: {
        operationId: 'changeOwnProfile',
        tags: ['Own profile'],
        summary: 'Change your own profile',
        description: 'Changes the given fields, all of them or none. Your contacts on other pods are notified.',
        body: changes,
        response: { 200: refTo(OwnProfile, 'Your whole profile after the change.') },
      },
      config: {
        scopes: ['profile:modify'],
        refusals: {
          invalid: 400,
          name_invalid: 400,
          filtered: 422,
          bio_invalid: 400,
          location_invalid: 400,
          gender_invalid: 400,
          birthday_invalid: 400,
          tags_invalid: 400,
        },
      },
    },
    async (request) => {
      const { searchable, show_profile_info, nsfw, name, bio, location, gender, birthday, tags } = request.body
      const changedProfile = await changeProfile(request.services, request.viewer, {
        ...withoutMissing({ name, bio, location, gender, birthday, tags }),
        ...withoutMissing({
          searchable: optionalBoolean(searchable),
          publicDetails: optionalBoolean(show_profile_info),
          nsfw: optionalBoolean(nsfw),
        }),
      })
      return present({ ...changedProfile, canShowDetails: true }, await countUnread(request.services, request.viewer))
    },
  )
}

function optionalBoolean(value: boolean | string | undefined): boolean | undefined {
  return value === undefined ? undefined : readBoolean(value)
}

type Present<Fields> = { [Name in keyof Fields]?: Exclude<Fields[Name], undefined> }

/** Removes undefined fields: they stay unchanged. */
function withoutMissing<Fields extends object>(fields: Fields): Present<Fields> {
  const present = Object.entries(fields).filter(([, value]) => value !== undefined)
  return Object.fromEntries(present) as Present<Fields> // a subset of the fields
}
