import { Person } from '../../persistence/models/person.js'
import type { ContactEntity, ProfileEntity } from '../../protocol/entities/people.js'
import type { Services } from '../../services/services.js'

/** The complete profile of a local person, with its private part: the recipients of the message keep it private. */
export async function profileEntity(
  { config, db }: Pick<Services, 'config' | 'db'>,
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
    ...withoutEmptyFields({
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

/** The contact of a local person with a remote one. On this pod following and sharing are one state. */
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

/** Leaves out empty fields: the receiver of a profile clears the fields that it does not contain. */
function withoutEmptyFields<Name extends string>(
  fields: Readonly<Record<Name, string | null | undefined>>,
): { readonly [Each in Name]?: string } {
  const filledFields = Object.entries(fields).filter(
    ([, value]) => value !== null && value !== undefined && value !== '',
  )
  return Object.fromEntries(filledFields) as { readonly [Each in Name]?: string } // no other names are added
}
