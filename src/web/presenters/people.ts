import type { Static } from 'typebox'
import type { ShownUnreadCounts } from '../../domain/notifications/unread-counts.js'
import type { OwnProfile as StoredOwnProfile } from '../../domain/people/people.js'
import type { VisiblePerson } from '../../domain/people/visible-people.js'
import type { Person, Profile } from '../../persistence/models/person.js'
import type { OtherPerson, OwnProfile, PersonSummary } from '../schemas/people.js'
import { type PodAddresses, pictureUrl } from './picture-urls.js'

/** The picture of people without one. Other pods recognise `user/default` in the URL and store no copy. */
export const DEFAULT_AVATAR_PATH = '/images/user/default.png'

export function presentOwnProfile(
  { person, profile, canShowDetails }: StoredOwnProfile,
  addresses: PodAddresses,
): Static<typeof OwnProfile> {
  return {
    ...presentNames(person),
    ...presentSettings(profile),
    ...(canShowDetails ? presentDetails(profile) : WITHHELD),
    avatar: presentAvatar(profile, addresses),
    tags: profile.tags,
  }
}

/** Only the counts that the token may read. */
export function presentUnreadCounts(counts: ShownUnreadCounts) {
  const { notifications, conversations, messages } = counts
  return {
    ...(notifications !== undefined && { unread_notifications: notifications }),
    ...(conversations !== undefined && { unread_conversations: conversations }),
    ...(messages !== undefined && { unread_messages: messages }),
  }
}

/** Hidden details are absent from the profile of another person, and null in the viewer's own profile. */
export function presentPerson(visiblePerson: VisiblePerson, addresses: PodAddresses): Static<typeof OtherPerson> {
  const { person, profile, isOwn, canShowDetails, canShowRelationship, relationship, aspects, isBlocked } =
    visiblePerson
  return {
    ...presentNames(person),
    ...(isOwn && { ...presentSettings(profile), ...WITHHELD }),
    ...(canShowDetails && presentDetails(profile)),
    avatar: presentAvatar(profile, addresses),
    tags: profile.tags,
    blocked: isBlocked,
    relationship: canShowRelationship ? relationship : null,
    aspects: canShowRelationship ? [...aspects] : null,
  }
}

const WITHHELD = { birthday: null, gender: null, location: null, bio: null }

function presentDetails({ birthday, gender, location, bio }: Pick<Profile, keyof typeof WITHHELD>) {
  return { birthday, gender, location, bio }
}

function presentSettings({ searchable, publicDetails, nsfw }: Pick<Profile, 'searchable' | 'publicDetails' | 'nsfw'>) {
  return { searchable, show_profile_info: publicDetails, nsfw }
}

function presentNames(person: Pick<Person, 'guid' | 'name' | 'address'>) {
  return {
    guid: person.guid,
    network_id: person.address,
    diaspora_id: person.address,
    name: presentName(person),
  }
}

export function presentName(person: Pick<Person, 'name' | 'address'>): string {
  return person.name.trim() === '' ? person.address : person.name
}

/** The short form of a person, as part of other objects. */
export function presentPersonSummary(
  person: Pick<Person, 'guid' | 'address' | 'name' | 'avatarUrl'>,
  addresses: PodAddresses,
): Static<typeof PersonSummary> {
  // Written out, because a page has dozens of people and spreading an object costs ten times as much.
  return {
    guid: person.guid,
    network_id: person.address,
    diaspora_id: person.address,
    name: presentName(person),
    avatar: pictureUrl(person.avatarUrl, addresses) ?? `${addresses.url}${DEFAULT_AVATAR_PATH}`,
  }
}

type Images = Pick<Profile, 'imageUrl' | 'imageUrlMedium' | 'imageUrlSmall'>

export function presentAvatar(images: Images, addresses: PodAddresses): Static<typeof OwnProfile>['avatar'] {
  const large = pictureUrl(images.imageUrl, addresses) ?? `${addresses.url}${DEFAULT_AVATAR_PATH}`
  return {
    large,
    medium: pictureUrl(images.imageUrlMedium, addresses) ?? large,
    small: pictureUrl(images.imageUrlSmall, addresses) ?? large,
    raw: large,
  }
}
