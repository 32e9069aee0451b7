import { Refusal } from '../../../domain/refusals.js'
import type { ArchiveImport } from '../../../persistence/archives/imports.js'
import { Person } from '../../../persistence/models/person.js'
import { User } from '../../../persistence/models/user.js'
import type { Services } from '../../../services/services.js'
import { openFetches } from '../lookups/fetches.js'
import { openPeopleFinder } from '../lookups/people-finder.js'
import type { ImportingUser } from '../owner.js'
import type { ArchiveVersion } from '../reading/archive-owner.js'
import type { DistinctAspectNames } from './aspect-names.js'
import { importFolder } from './begin-import.js'
import type { ImportContext } from './import-context.js'

/** Returns the context of the importers in a running import. Throws a `Refusal` if the account is closed. */
export async function openImportContext(
  services: Services,
  { id, uid, userId, oldAddress, header }: ArchiveImport,
  signal: AbortSignal,
): Promise<ImportContext> {
  const user = await User.query(services.db).findById(userId).withGraphFetched('person').throwIfNotFound()
  if (user.closedAt !== null) throw new Refusal('account_closed', 'The account is closed.')
  const old = await Person.byAddress(services.db, oldAddress)
  return {
    services,
    user: toImportingUser(user),
    version: header['version'] as ArchiveVersion, // as the start of the import has stored it
    oldAddress,
    oldPersonId: old?.id,
    aspectNames: (header['aspect_names'] ?? {}) as DistinctAspectNames, // likewise; imports of earlier versions have none
    people: openPeopleFinder(services),
    fetches: openFetches(services, importFolder(services, { uid })),
    importId: id,
    planned: undefined,
    signal,
  }
}

export function toImportingUser({ id, personId, username, person }: User): ImportingUser {
  if (person === undefined) throw new Error(`The account ${username} was read without its person.`)
  return { userId: id, personId, username, address: person.address }
}
