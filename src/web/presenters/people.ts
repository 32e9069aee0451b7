import type { Static } from 'typebox'
import type { ShownUnreadCounts } from '../../domain/notifications/unread-counts.js'
import type { OwnProfile as OwnProfileFacts } from '../../domain/people/people.js'
import type { VisiblePerson } from '../../domain/people/visible-people.js'
import type { Person, Profile } from '../../persistence/models/person.js'
import { isUrl } from '../../protocol/is-url.js'
import type { OtherPerson, OwnProfile, PersonSummary } from '../schemas/common.js'

/** For people without a picture. Other pods recognise `user/default` in the address and keep no copy. */
export const DEFAULT_AVATAR_PATH = '/images/user/default.png'

export function presentOwnProfile(
  { person, profile, showsDetails }: OwnProfileFacts,
  podUrl: string,
): Static<typeof OwnProfile> {
  return {
    ...presentNames(person),
    ...presentSettings(profile),
    ...(showsDetails ? presentDetails(profile) : WITHHELD),
    avatar: presentAvatar(profile, podUrl),
    tags: profile.tags,
  }
}

/** Absent is what the token may not read. */
export function presentUnreadCounts(counts: ShownUnreadCounts) {
  const { notifications, conversations, messages } = counts
  return {
    ...(notifications !== undefined && { unread_notifications: notifications }),
    ...(conversations !== undefined && { unread_conversations: conversations }),
    ...(messages !== undefined && { unread_messages: messages }),
  }
}

/** Details that somebody else does not show are not there at all; those of the viewer are there and empty. */
export function presentPerson(shown: VisiblePerson, podUrl: string): Static<typeof OtherPerson> {
  const { person, profile, isOwn: own, showsDetails, showsRelationship, relationship, aspects, blocked } = shown
  return {
    ...presentNames(person),
    ...(own && { ...presentSettings(profile), ...WITHHELD }),
    ...(showsDetails && presentDetails(profile)),
    avatar: presentAvatar(profile, podUrl),
    tags: profile.tags,
    blocked,
    relationship: showsRelationship ? relationship : null,
    aspects: showsRelationship ? [...aspects] : null,
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

/** Somebody, wherever they are named. */
export function presentPersonSummary(
  person: Pick<Person, 'guid' | 'address' | 'name' | 'avatarUrl'>,
  podUrl: string,
): Static<typeof PersonSummary> {
  // A page has dozens of people in it. To spread an object costs ten times as much as to write it out.
  return {
    guid: person.guid,
    network_id: person.address,
    diaspora_id: person.address,
    name: presentName(person),
    avatar: absolute(person.avatarUrl, podUrl) ?? `${podUrl}${DEFAULT_AVATAR_PATH}`,
  }
}

type Images = Pick<Profile, 'imageUrl' | 'imageUrlMedium' | 'imageUrlSmall'>

export function presentAvatar(images: Images, podUrl: string): Static<typeof OwnProfile>['avatar'] {
  const large = absolute(images.imageUrl, podUrl) ?? `${podUrl}${DEFAULT_AVATAR_PATH}`
  return {
    large,
    medium: absolute(images.imageUrlMedium, podUrl) ?? large,
    small: absolute(images.imageUrlSmall, podUrl) ?? large,
    raw: large,
  }
}

/** Pictures of other pods are addresses that strangers wrote: anything but http(s) is no picture. */
function absolute(url: string | null, podUrl: string): string | undefined {
  if (url === null || url.trim() === '' || !isUrl(url, podUrl)) return undefined
  const parsed = new URL(url, podUrl)
  return parsed.protocol === 'https:' || parsed.protocol === 'http:' ? parsed.href : undefined
}
