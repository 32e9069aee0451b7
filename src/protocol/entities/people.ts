import { isWithinLength } from '../values.js'
import { defineEntity, type EntityOf, type Property } from './define-entity.js'
import { optional, required, requiredNested, withDefaultIfMissing, withDefaultIfUnreadable } from './properties.js'
import {
  address,
  birthday,
  flag,
  maxTextCharacters,
  personName,
  text,
  textWhere,
  timestamp,
  urlWithPath,
} from './value-types.js'

const maxTags = 5

const tags = textWhere(
  (value) => isWithinLength(value, maxTextCharacters) && value.split('#').length - 1 <= maxTags,
  `is longer than ${maxTextCharacters} characters or has more than ${maxTags} tags`,
)

export const profile = defineEntity('profile', {
  author: required(address),
  edited_at: optional(timestamp),
  full_name: optional(personName(70)),
  first_name: optional(personName(32)),
  last_name: optional(personName(32)),
  image_url: optional(urlWithPath),
  image_url_medium: optional(urlWithPath),
  image_url_small: optional(urlWithPath),
  bio: optional(text()),
  birthday: optional(birthday),
  gender: optional(text(255)),
  location: optional(text(255)),
  searchable: withDefaultIfUnreadable(flag, true),
  public: withDefaultIfUnreadable(flag, false),
  nsfw: withDefaultIfUnreadable(flag, false),
  tag_string: optional(tags),
})

export const contact = defineEntity(
  'contact',
  {
    author: required(address),
    recipient: required(address),
    following: withDefaultIfMissing(flag, true),
    sharing: withDefaultIfMissing(flag, true),
    blocking: withDefaultIfUnreadable(flag, false),
  },
  (entity) =>
    entity.blocking && (entity.following || entity.sharing) ? 'blocks a person it follows or shares with' : undefined,
)

export const accountDeletion = defineEntity('account_deletion', {
  author: required(address),
})

const requiredAddress = required(address)

/** Defaults to the author; required if the new identity is the author. */
const oldIdentity: Property<string> = {
  ...requiredAddress,
  read(source, name, receivedAt) {
    const newIdentity = source.nested('profile', profile.name)?.text('author', 'string')
    const isSentByNewIdentity = newIdentity === source.text('author', 'string')
    return requiredAddress.read(source, isSentByNewIdentity ? name : 'author', receivedAt)
  },
}

export const accountMigration = defineEntity(
  'account_migration',
  {
    author: requiredAddress,
    profile: requiredNested(profile),
    // Optional here: a missing signature fails at verification, with the same fault as an invalid one.
    signature: optional(text()),
    old_identity: oldIdentity,
    remote_photo_path: optional(urlWithPath),
  },
  (entity) => (entity.old_identity === entity.profile.author ? 'moves an identity to itself' : undefined),
)

export type ProfileEntity = EntityOf<typeof profile>
export type ContactEntity = EntityOf<typeof contact>
export type AccountDeletionEntity = EntityOf<typeof accountDeletion>
export type AccountMigrationEntity = EntityOf<typeof accountMigration>
