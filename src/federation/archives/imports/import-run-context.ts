import { Refusal } from '../../../domain/refusals.js'
import type { Import } from '../../../persistence/archives/imports.js'
import { Person } from '../../../persistence/models/person.js'
import { User } from '../../../persistence/models/user.js'
import type { Pod } from '../../../pod/pod.js'
import { openFetches } from '../lookups/fetches.js'
import { openPeopleFinder } from '../lookups/people-finder.js'
import type { ImportingUser } from '../owner.js'
import type { ArchiveVersion } from '../reading/archive-owner.js'
import type { ImportContext } from './import-context.js'

/** What the importers need in an import that has begun. Throws a `Refusal` if the account is closed. */
export async function openImportContext(
  pod: Pod,
  { id, userId, oldAddress, header }: Import,
  signal: AbortSignal,
): Promise<ImportContext> {
  const user = await User.query(pod.db).findById(userId).withGraphFetched('person').throwIfNotFound()
  if (user.closedAt !== null) throw new Refusal('account_closed', 'The account is closed.')
  const old = await Person.byAddress(pod.db, oldAddress)
  return {
    pod,
    user: toImportingUser(user),
    version: header['version'] as ArchiveVersion, // as the start of the import has stored it
    oldAddress,
    oldPersonId: old?.id,
    people: openPeopleFinder(pod),
    fetches: openFetches(pod),
    importId: id,
    planned: undefined,
    signal,
  }
}

export function toImportingUser({ id, personId, username, person }: User): ImportingUser {
  if (person === undefined) throw new Error(`The account ${username} was read without its person.`)
  return { userId: id, personId, username, address: person.address }
}
