import { findImport, findImportsOfUser, type Import } from '../../persistence/archives/imports.js'
import type { Pod } from '../../pod/pod.js'
import type { Viewer } from '../accounts/viewers.js'
import { Refusal } from '../refusals.js'

export type { Import }

type ImportRefusal = 'import_not_found'

/** The imports of the viewer, the newest first. */
export async function listImports({ db }: Pick<Pod, 'db'>, { userId }: Viewer): Promise<readonly Import[]> {
  return findImportsOfUser(db, userId)
}

export async function readImport({ db }: Pick<Pod, 'db'>, { userId }: Viewer, uid: string): Promise<Import> {
  const accountImport = await findImport(db, { userId, uid })
  if (accountImport === undefined)
    throw new Refusal<ImportRefusal>('import_not_found', 'There is no import with this id.')
  return accountImport
}
