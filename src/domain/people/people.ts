import { type LocalCard, Person, type Profile } from '../../persistence/models/person.js'
import type { Pod } from '../../pod/pod.js'
import { isGuid } from '../../protocol/values.js'
import type { Viewer } from '../accounts/viewers.js'

export interface OwnProfile {
  readonly person: Person
  readonly profile: Profile
  /** Birthday, gender, location and bio are public or the token may show them. */
  readonly canShowDetails: boolean
}

export async function findOwnProfile(pod: Pod, viewer: Viewer): Promise<OwnProfile> {
  const person = await Person.query(pod.db)
    .findById(viewer.personId)
    .withGraphJoined('profile')
    .throwIfNotFound({ message: 'a user without a person' })
  const { profile } = person
  if (!profile) throw new Error(`Person ${person.guid} has no profile.`)
  return { person, profile, canShowDetails: profile.publicDetails || viewer.scopes.has('profile:read_private') }
}

/** Finds a local person, or the account of the pod, by address. Undefined also for closed accounts. */
export async function findLocalPerson(
  pod: Pick<Pod, 'db'>,
  address: string,
): Promise<Pick<Person, 'guid' | 'address'> | undefined> {
  return Person.findLocalByAddress(pod.db, address)
}

/** Finds the public data of a local person, or of the account of the pod. */
export async function findLocalCard(pod: Pick<Pod, 'db'>, guid: string): Promise<LocalCard | undefined> {
  return isGuid(guid) ? Person.findLocalCard(pod.db, guid) : undefined
}

/** Finds a local or remote person with profile and pod. */
export async function findKnownPerson(
  pod: Pick<Pod, 'db'>,
  who: { readonly guid: string } | { readonly address: string },
): Promise<Person | undefined> {
  return Person.query(pod.db).findOne(who).withGraphFetched('[profile, pod]')
}
