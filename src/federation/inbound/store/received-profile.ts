import type { ProfileOwner, ReceivedProfile } from '../../../persistence/inbound/replace-profiles.js'
import type { ProfileEntity } from '../../../protocol/entities/people.js'
import { readTags } from '../../../protocol/mentions.js'
import { podOrigin } from '../../discovery/pod-origin.js'
import { profileImageUrl } from '../../discovery/profile-image.js'
import { plausibleTime } from './plausible-time.js'

/** The columns of a received profile. Missing fields clear the stored values. */
export function toProfileValues(
  profile: ProfileEntity,
  owner: ProfileOwner,
  { acceptedAt, now }: { readonly acceptedAt: Date; readonly now: Date },
): ReceivedProfile {
  const podUrl = podOrigin(owner)
  const image = (url: string | undefined) =>
    url === undefined || podUrl === undefined ? null : profileImageUrl(url, podUrl)
  return {
    personId: owner.id,
    ...toWrittenFields(profile),
    imageUrl: image(profile.image_url),
    imageUrlMedium: image(profile.image_url_medium),
    imageUrlSmall: image(profile.image_url_small),
    // A time in the future would reject every later profile.
    editedAt: profile.edited_at && plausibleTime(profile.edited_at, acceptedAt, now),
    acceptedAt,
  }
}

/** The columns of what the person has written, without pictures. */
export function toWrittenFields(profile: ProfileEntity) {
  return {
    firstName: profile.first_name?.trim() || null,
    lastName: profile.last_name?.trim() || null,
    bio: profile.bio ?? '',
    location: profile.location ?? '',
    gender: profile.gender || null,
    birthday: profile.birthday || null,
    searchable: profile.searchable,
    publicDetails: profile.public,
    nsfw: profile.nsfw,
    tags: readTags(profile.tag_string ?? ''),
  }
}
