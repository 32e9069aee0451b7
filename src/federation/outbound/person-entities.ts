import { Person } from '../../persistence/models/person.js'
import type { Pod } from '../../pod/pod.js'
import type { ContactEntity, ProfileEntity } from '../../protocol/entities/people.js'

/** What one of our people shows of themselves: all of it, for it is the channel that keeps private what is private. */
export async function profileEntity(
  { config, db }: Pick<Pod, 'config' | 'db'>,
  personId: number,
): Promise<ProfileEntity | undefined> {
  const person = await Person.query(db).findById(personId).whereNull('podId').withGraphFetched('profile')
  const profile = person?.profile
  if (person === undefined || profile === undefined) return undefined
  const image = (url: string | null) => (url === null ? undefined : new URL(url, config.url).href)
  return {
    type: 'profile',
    author: person.address,
    edited_at: profile.updatedAt,
    ...withValue({
      full_name: person.name,
      first_name: profile.firstName,
      last_name: profile.lastName,
      image_url: image(profile.imageUrl),
      image_url_medium: image(profile.imageUrlMedium),
      image_url_small: image(profile.imageUrlSmall),
      bio: profile.bio,
      birthday: profile.birthday,
      gender: profile.gender,
      location: profile.location,
      tag_string: profile.tags.map((tag) => `#${tag}`).join(' '),
    }),
    searchable: profile.searchable,
    public: profile.publicDetails,
    nsfw: profile.nsfw,
  }
}

/** What is between somebody of this pod and somebody elsewhere. Nobody follows without sharing. */
export function contactEntity(
  author: Pick<Person, 'address'>,
  recipient: Pick<Person, 'address'>,
  { sharing, blocking }: { readonly sharing: boolean; readonly blocking: boolean },
): ContactEntity {
  return {
    type: 'contact',
    author: author.address,
    recipient: recipient.address,
    following: sharing,
    sharing,
    blocking,
  }
}

/** Empty fields are left out: whoever receives a profile clears what it does not name. */
function withValue<Name extends string>(
  fields: Readonly<Record<Name, string | null | undefined>>,
): { readonly [Each in Name]?: string } {
  const filled = Object.entries(fields).filter(([, value]) => value !== null && value !== undefined && value !== '')
  return Object.fromEntries(filled) as { readonly [Each in Name]?: string } // only these names went in
}
