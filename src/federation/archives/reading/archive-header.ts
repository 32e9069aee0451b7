import { entityFromJson } from '../../../protocol/entities/entity-json.js'
import type { ProfileEntity } from '../../../protocol/entities/people.js'
import { ProtocolError } from '../../../protocol/errors.js'
import { firstCharacters } from '../../../protocol/values.js'
import { IMPORT_LIMITS } from '../limits.js'
import { type ArchiveOwner, readMembers } from './archive-owner.js'

/** The profile and the settings of an archive, as an import stores them. Its row must stay small, whatever the archive has there. */
export interface ArchiveHeader {
  /** Undefined: the profile is not valid. */
  readonly profile: Readonly<Record<string, unknown>> | undefined
  readonly language: string | undefined
  readonly disable_mail: boolean | undefined
  readonly auto_follow_back: boolean | undefined
  /** A name: diaspora* may write the whole aspect. */
  readonly auto_follow_back_aspect: string | undefined
  readonly settings: Readonly<Record<string, unknown>> | undefined
}

/** Reads the members of the right type and size; the others are left out. */
export function readArchiveHeader(
  values: ReadonlyMap<string, unknown>,
  owner: Pick<ArchiveOwner, 'address' | 'profile'>,
  now: Date,
): ArchiveHeader {
  const profile = { ...owner.profile, author: owner.address }
  const value = (name: string) => values.get(`user.${name}`)
  const aspect = value('auto_follow_back_aspect')
  const settings = readMembers(value('settings'))
  return {
    profile: readProfile(profile, now) && pickProfileMembers(profile),
    language: readText(value('language'), MAX_NAME_CHARACTERS),
    disable_mail: readFlag(value('disable_mail')),
    auto_follow_back: readFlag(value('auto_follow_back')),
    auto_follow_back_aspect: readText(readMembers(aspect)?.['name'] ?? aspect, MAX_NAME_CHARACTERS),
    settings: JSON.stringify(settings ?? {}).length <= IMPORT_LIMITS.settingsCharacters ? settings : undefined,
  }
}

/** Reads a profile by the rules for messages, without its pictures, which are imported as photos. Undefined: it is not valid. */
export function readProfile(data: Readonly<Record<string, unknown>>, now: Date): ProfileEntity | undefined {
  try {
    const members = Object.entries(data).filter(([name, value]) => value !== null && !PICTURES.has(name))
    const entity = entityFromJson({ entity_type: 'profile', entity_data: Object.fromEntries(members) }, now)
    return entity.type === 'profile' ? entity : undefined
  } catch (error) {
    if (error instanceof ProtocolError) return undefined
    throw error
  }
}

const PICTURES: ReadonlySet<string> = new Set(['image_url', 'image_url_medium', 'image_url_small'])

/** The members whose length `readProfile` checks. */
const PROFILE_MEMBERS = [
  'author',
  'edited_at',
  'full_name',
  'first_name',
  'last_name',
  'bio',
  'birthday',
  'gender',
  'location',
  'searchable',
  'public',
  'nsfw',
  'tag_string',
] as const

const MAX_NAME_CHARACTERS = 255
const MAX_URL_CHARACTERS = 2_048

function pickProfileMembers(profile: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const members = Object.fromEntries(PROFILE_MEMBERS.map((name) => [name, profile[name] ?? undefined]))
  const { image_url: url } = profile
  return { ...members, ...(typeof url === 'string' && url.length <= MAX_URL_CHARACTERS && { image_url: url }) }
}

function readText(value: unknown, maxCharacters: number): string | undefined {
  return typeof value === 'string' ? firstCharacters(value, maxCharacters) : undefined
}

function readFlag(value: unknown): boolean | undefined {
  return typeof value === 'boolean' ? value : undefined
}
