import { Person, type Profile } from '../persistence/models/person.js'
import type { Pod } from '../pod.js'
import type { Viewer } from './access.js'

export interface OwnProfile {
  readonly person: Person
  readonly profile: Profile
  /** Birthday, gender, location and bio: the token may see them, or everybody may. */
  readonly showsDetails: boolean
}

export async function findOwnProfile(pod: Pod, viewer: Viewer): Promise<OwnProfile> {
  const person = await Person.query(pod.db)
    .findById(viewer.personId)
    .withGraphJoined('profile')
    .throwIfNotFound({ message: 'a user without a person' })
  const { profile } = person
  if (!profile) throw new Error(`Person ${person.guid} has no profile.`)
  return { person, profile, showsDetails: profile.publicDetails || viewer.scopes.has('profile:read_private') }
}
