import { type LocalCard, Person, type Profile } from '../../persistence/models/person.js'
import { isGuid } from '../../protocol/values.js'
import type { Services } from '../../services/services.js'
import type { Viewer } from '../accounts/viewers.js'

export interface OwnProfile {
  readonly person: Person
  readonly profile: Profile
  /** Birthday, gender, location and bio are public or the token may show them. */
  readonly canShowDetails: boolean
}

export async function getOwnProfile(services: Services, viewer: Viewer): Promise<OwnProfile> {
  const person = await Person.query(services.db)
    .findById(viewer.personId)
    .withGraphJoined('profile')
    .throwIfNotFound({ message: 'a user without a person' })
  const { profile } = person
  if (!profile) throw new Error(`Person ${person.guid} has no profile.`)
  return { person, profile, canShowDetails: profile.publicDetails || viewer.scopes.has('profile:read_private') }
}

/** Finds a local person, or the account of the pod, by address. Undefined for closed accounts as well. */
export async function findLocalPerson(
  services: Pick<Services, 'db'>,
  address: string,
): Promise<Pick<Person, 'guid' | 'address'> | undefined> {
  return Person.findLocalByAddress(services.db, address)
}

/** Finds the public data of a local person, or of the account of the pod. */
export async function findLocalCard(services: Pick<Services, 'db'>, guid: string): Promise<LocalCard | undefined> {
  return isGuid(guid) ? Person.findLocalCard(services.db, guid) : undefined
}

/** Finds a local or remote person with profile and pod. */
export async function findKnownPerson(
  services: Pick<Services, 'db'>,
  who: { readonly guid: string } | { readonly address: string },
): Promise<Person | undefined> {
  return Person.query(services.db).findOne(who).withGraphFetched('[profile, pod]')
}
