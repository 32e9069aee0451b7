import { type Static, Type } from 'typebox'
import type { SettingsChange } from '../../domain/accounts/settings.js'
import { Refusal } from '../../domain/refusals.js'
import { DELIVERIES } from '../../persistence/mail/mail-kinds.js'
import { BooleanField, readBoolean } from './booleans.js'
import { Timestamp } from './formats.js'
import { numberField } from './numbers.js'
import { nullable } from './references.js'

export const UserSettings = Type.Object(
  {
    language: Type.String({ description: 'One of `available_languages`.' }),
    available_languages: Type.Array(Type.String()),
    time_zone: Type.String({ description: 'A name of the IANA database, such as `Europe/Berlin`.' }),
    follow_back_aspect_id: nullable(
      Type.Integer({
        description: 'The aspect for people who start sharing with you; null: they are not followed back.',
      }),
    ),
    default_post_public: Type.Boolean({ description: 'Advice to clients for a new post.' }),
    default_post_aspect_ids: Type.Array(Type.Integer(), {
      description: 'Advice to clients for a new post; empty if it is public.',
    }),
    strip_exif: Type.Boolean({ description: 'Always true: the metadata of photos is removed.' }),
    mail_enabled: Type.Boolean({
      description: 'False: no notices by mail. Mails about the account are sent all the same.',
    }),
    mail_kinds: Type.Record(Type.String(), Type.Enum([...DELIVERIES]), {
      description: 'When notices of each kind are sent by mail.',
    }),
    digest_hour: Type.Integer({ description: 'The hour of the daily summary, in `time_zone`.' }),
    email: Type.Optional(nullable(Type.String({ description: 'Absent without the scope `email`.' }))),
    unconfirmed_email: Type.Optional(
      nullable(
        Type.String({ description: 'Replaces `email` once it is confirmed. Absent without the scope `email`.' }),
      ),
    ),
    email_confirmed: Type.Boolean(),
    mail_available: Type.Boolean({ description: 'Whether the pod sends mails.' }),
    mail_state: Type.Enum(['ok', 'bouncing', 'suppressed'], {
      description: '`suppressed`: mails come back, so no notices are sent.',
    }),
    second_factor: Type.Object({
      totp: Type.Boolean({ description: 'Whether an authenticator app is set up.' }),
      passkeys: Type.Integer(),
      recovery_codes_left: Type.Integer(),
    }),
    close_at: nullable({ ...Timestamp, description: 'When the account is closed; null: it stays open.' }),
  },
  { $id: 'UserSettings', description: 'The settings of an account.' },
)

const ids = { minimum: 1, digits: 15 } as const

/** Fields that are absent stay as they are; all others of `UserSettings` are read-only. */
export const SettingsChanges = Type.Object({
  language: Type.Optional(Type.String({ description: 'One of `available_languages`.' })),
  time_zone: Type.Optional(Type.String({ description: 'A name of the IANA database.' })),
  follow_back_aspect_id: Type.Optional(
    Type.Union([numberField({ ...ids, description: 'One of your aspects, or null.' }), Type.Null()]),
  ),
  default_post_public: Type.Optional(BooleanField),
  default_post_aspect_ids: Type.Optional(Type.Array(numberField({ ...ids, description: 'One of your aspects.' }))),
  mail_enabled: Type.Optional(BooleanField),
  mail_kinds: Type.Optional(
    Type.Record(Type.String(), Type.String(), {
      description: `${DELIVERIES.join(', ')} for each kind; kinds that are absent stay as they are.`,
    }),
  ),
  digest_hour: Type.Optional(numberField({ minimum: 0, digits: 2, description: '0 to 23.' })),
})

const READ_ONLY = Object.keys(UserSettings.properties).filter((name) => !(name in SettingsChanges.properties))

function requireWritable(body: object): void {
  const field = READ_ONLY.find((name) => Object.hasOwn(body, name))
  if (field === undefined) return
  throw new Refusal('read_only', `"${field}" cannot be changed over the API.`, { details: { field } })
}

/** Reads a change whose shape is checked. Fields that only the pod sets are refused. */
export function readSettingsChange(body: Static<typeof SettingsChanges>): SettingsChange {
  requireWritable(body)
  const { follow_back_aspect_id: aspectId, default_post_public: isPublic, mail_enabled: enabled } = body
  const { default_post_aspect_ids: aspectIds, digest_hour: hour, mail_kinds: kinds } = body
  return {
    language: body.language,
    timeZone: body.time_zone,
    followBackAspectId: aspectId == null ? aspectId : Number(aspectId),
    defaultPostPublic: isPublic === undefined ? undefined : readBoolean(isPublic),
    defaultPostAspectIds: aspectIds?.map(Number),
    mail: {
      ...(enabled !== undefined && { enabled: readBoolean(enabled) }),
      ...(hour !== undefined && { digestHour: Number(hour) }),
      ...(kinds !== undefined && { kinds }),
    },
  }
}
