import type { Static } from 'typebox'
import type { OwnProfile as OwnProfileFacts } from '../../domain/people.js'
import type { Person, Profile } from '../../persistence/models/person.js'
import type { OwnProfile } from '../schemas.js'

/** For people without a picture. Other pods recognise `user/default` in the address and keep no copy. */
export const DEFAULT_AVATAR_PATH = '/images/user/default.png'

export function presentOwnProfile(
  { person, profile, showsDetails }: OwnProfileFacts,
  podUrl: string,
): Static<typeof OwnProfile> {
  return {
    guid: person.guid,
    network_id: person.address,
    diaspora_id: person.address,
    name: presentName(person),
    searchable: profile.searchable,
    show_profile_info: profile.publicDetails,
    nsfw: profile.nsfw,
    birthday: showsDetails ? profile.birthday : null,
    gender: showsDetails ? profile.gender : null,
    location: showsDetails ? profile.location : null,
    bio: showsDetails ? profile.bio : null,
    avatar: presentAvatar(profile, podUrl),
    tags: profile.tags,
  }
}

export function presentName(person: Pick<Person, 'name' | 'address'>): string {
  return person.name.trim() === '' ? person.address : person.name
}

/** Somebody, wherever they are named. */
export function presentPersonSummary(person: Pick<Person, 'guid' | 'address' | 'name' | 'avatarUrl'>, podUrl: string) {
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
  if (url === null || url.trim() === '' || !URL.canParse(url, podUrl)) return undefined
  const parsed = new URL(url, podUrl)
  return parsed.protocol === 'https:' || parsed.protocol === 'http:' ? parsed.href : undefined
}
