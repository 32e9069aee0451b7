import type { Knex } from 'knex'
import { Person, type ProfileFields } from '../../../persistence/models/person.js'
import { User } from '../../../persistence/models/user.js'
import { entityFromJson } from '../../../protocol/entities/entity-json.js'
import { ProtocolError } from '../../../protocol/errors.js'
import { readTags } from '../../../protocol/mentions.js'
import { readMembers } from '../reading/archive-owner.js'
import { ensureAspects, readAspectName } from './import-aspects.js'
import type { ImportContext, ImportRejectionReason } from './import-context.js'

/** Changes the profile to that of the archive. Undefined: done. The profile travels with the migration, and is not sent by itself. */
export async function importProfile(
  { pod, user }: ImportContext,
  transaction: Knex.Transaction,
  data: Readonly<Record<string, unknown>>,
): Promise<ImportRejectionReason | undefined> {
  const fields = profileFieldsOf({ ...data, author: user.address }, pod.now())
  if (fields === undefined) return 'schema'
  await Person.lock(transaction, user.personId)
  await Person.updateProfile(transaction, user.personId, { ...fields, updatedAt: pod.now() })
  return undefined
}

function profileFieldsOf(data: Readonly<Record<string, unknown>>, now: Date): ProfileFields | undefined {
  try {
    // The pictures are imported as photos.
    const { image_url: _, image_url_medium: __, image_url_small: ___, ...rest } = withoutNulls(data)
    const entity = entityFromJson({ entity_type: 'profile', entity_data: rest }, now)
    if (entity.type !== 'profile') return undefined
    return {
      firstName: entity.first_name?.trim() || null,
      lastName: entity.last_name?.trim() || null,
      bio: entity.bio ?? '',
      location: entity.location ?? '',
      gender: entity.gender || null,
      birthday: entity.birthday || null,
      searchable: entity.searchable,
      publicDetails: entity.public,
      nsfw: entity.nsfw,
      tags: [...readTags(entity.tag_string ?? '')],
    }
  } catch (error) {
    if (error instanceof ProtocolError) return undefined
    throw error
  }
}

function withoutNulls(data: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  return Object.fromEntries(Object.entries(data).filter(([, value]) => value !== null))
}

/** Language and following back; never e-mail address, name, role or second factor. */
export async function importSettings(
  { pod, user }: ImportContext,
  transaction: Knex.Transaction,
  header: Readonly<Record<string, unknown>>,
): Promise<void> {
  const { language, auto_follow_back: follows } = header
  const name = followBackAspectName(header['auto_follow_back_aspect'])
  if (typeof language === 'string' && pod.locales.languages.includes(language)) {
    await User.query(transaction).findById(user.userId).patch({ language })
  }
  if (follows !== true || name === undefined) return
  const aspects = await ensureAspects(transaction, user.userId, [name])
  const followBackAspectId = aspects.get(name.toLowerCase()) ?? null
  await User.query(transaction).findById(user.userId).patch({ followBackAspectId })
}

/** diaspora* writes the whole record of the aspect instead of its name. */
function followBackAspectName(value: unknown): string | undefined {
  return readAspectName(readMembers(value)?.['name'] ?? value)
}
