import { enqueueJobs, newDispatchJob } from '../../jobs/outbox/enqueue-jobs.js'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { Person, Profile, type ProfileFields } from '../../persistence/models/person.js'
import { isAcceptedName, isBirthday } from '../../protocol/values.js'
import { isCleanText } from '../../protocol/xml/xml.js'
import type { Services } from '../../services/services.js'
import type { Viewer } from '../accounts/viewers.js'
import { TEXT_LIMITS } from '../limits.js'
import { applyFilterEffects, requireUnfiltered } from '../moderation/filters/check-documents.js'
import { profileDocument } from '../moderation/filters/filter-document.js'
import { normaliseTagName } from '../posts/tags.js'
import { findTextFault } from '../posts/texts.js'
import { Refusal } from '../refusals.js'
import { getOwnProfile, type OwnProfile } from './people.js'

/** A change of the viewer's profile. Missing fields stay unchanged. */
export interface ProfileChange {
  readonly name?: string
  readonly bio?: string | null
  readonly location?: string | null
  readonly gender?: string | null
  /** A date, or a date with a time that is ignored. */
  readonly birthday?: string | null
  readonly searchable?: boolean
  readonly publicDetails?: boolean
  readonly nsfw?: boolean
  readonly tags?: readonly string[]
  /** Null removes the picture. */
  readonly picture?: null
}

/** Changes the profile in one transaction. The profile is sent to contacts only if a field has a new value. */
export async function changeProfile(services: Services, viewer: Viewer, change: ProfileChange): Promise<OwnProfile> {
  const newValues = validateChange(change)
  const { firstName, bio, tags } = newValues
  const matchedDocuments = await requireUnfiltered(services, viewer, (author, guid) =>
    profileDocument({ guid, author }, { name: firstName ?? '', bio: bio ?? '', tags: tags ?? [] }),
  )
  await inRequestTransaction(services, async (transaction) => {
    const { personId } = viewer
    await Person.lock(transaction, personId)
    const profile = await Profile.query(transaction).findById(personId).throwIfNotFound()
    if (isUnchanged(profile, newValues)) return
    await Person.updateProfile(transaction, personId, { ...newValues, updatedAt: services.now() })
    await enqueueJobs(services, transaction, [newDispatchJob(personId, { record: 'profile', personId })])
    await applyFilterEffects(services, transaction, matchedDocuments)
  })
  return getOwnProfile(services, viewer)
}

/** Converts a change to stored columns. Throws a `Refusal` at the first invalid field. */
function validateChange(change: ProfileChange): ProfileFields {
  const { name, bio, location, gender, birthday, tags, picture, ...flags } = change
  return {
    ...flags,
    ...(name !== undefined && { firstName: validateName(name) || null, lastName: null }),
    ...(bio !== undefined && { bio: validateText('bio', bio ?? '') }),
    ...(location !== undefined && {
      location: validateText('location', location ?? '', TEXT_LIMITS.profileLineCharacters),
    }),
    ...(gender !== undefined && {
      gender: validateText('gender', gender ?? '', TEXT_LIMITS.profileLineCharacters) || null,
    }),
    ...(birthday !== undefined && { birthday: validateBirthday(birthday ?? '') || null }),
    ...(tags !== undefined && { tags: validateTags(tags) }),
    ...(picture === null && { imageUrl: null, imageUrlMedium: null, imageUrlSmall: null }),
  }
}

function validateName(text: string): string {
  const name = text.trim()
  if (isAcceptedName(name, TEXT_LIMITS.nameCharacters) && isCleanText(name)) return name
  throw refusal('name', `A name must have at most ${TEXT_LIMITS.nameCharacters} characters and no semicolon.`)
}

function validateText(field: CheckedField, text: string, longest?: number): string {
  const fault = findTextFault(text, longest)
  if (fault === undefined) return text
  throw refusal(field, `The ${field} ${fault}.`)
}

/** Some clients send a date as the time at which it begins. */
const DAY_OR_TIME =
  /^(\d{4}-\d{2}-\d{2})(?:[T ](?:[01]\d|2[0-3])(?::[0-5]\d(?::[0-5]\d(?:[.,]\d+)?)?)?(?:Z|[+-](?:[01]\d|2[0-3])(?::?[0-5]\d)?)?)?$/i

function validateBirthday(text: string): string {
  const day = DAY_OR_TIME.exec(text)?.[1] ?? text
  if (isBirthday(day)) return day
  throw refusal('birthday', 'A birthday must be a calendar day, written YYYY-MM-DD.')
}

function validateTags(texts: readonly string[]): string[] {
  if (texts.length > TEXT_LIMITS.tagsOfPerson)
    throw refusal('tags', `A profile may have at most ${TEXT_LIMITS.tagsOfPerson} tags.`)
  const tags = texts
    .map((text) => validateText('tags', normaliseTagName(text), TEXT_LIMITS.profileLineCharacters))
    .filter((tag) => tag !== '')
  return [...new Set(tags)]
}

function isUnchanged(profile: Profile, wanted: ProfileFields): boolean {
  return Object.entries(wanted).every(([name, value]) => {
    return JSON.stringify(value) === JSON.stringify(Reflect.get(profile, name))
  })
}

type CheckedField = 'name' | 'bio' | 'location' | 'gender' | 'birthday' | 'tags'

function refusal(field: CheckedField, message: string): Refusal {
  return new Refusal(`${field}_invalid`, message)
}
