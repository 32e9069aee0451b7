import { isDeepStrictEqual } from 'node:util'
import { listProcesses } from '../src/persistence/operations/processes.js'
import { listPictureStores, type PictureStores } from '../src/persistence/photos/open-pictures.js'
import type { Services } from '../src/services/services.js'
import { CommandError } from './command-error.js'

/** Refuses a command whose settings name other stores of pictures than those of a running process of the pod. */
export async function requirePictureStores({ db, config }: Pick<Services, 'config' | 'db'>): Promise<void> {
  const ownStores = listPictureStores(config)
  for (const { kind, pid, host, facts } of await listProcesses(db)) {
    if (facts.pictures === undefined || isDeepStrictEqual(facts.pictures, ownStores)) continue
    throw new CommandError(
      `The ${kind} process ${pid} on ${host} has ${describe(facts.pictures)}, and this command has ${describe(ownStores)}: use the same settings everywhere, and restart processes with old ones.`,
    )
  }
}

function describe({ store, fallback, bucket }: PictureStores): string {
  const parts = [`STORAGE=${store}`]
  if (fallback !== null) parts.push(`UPLOADS_FALLBACK=${fallback}`)
  if (bucket !== null) parts.push(`the bucket ${bucket}`)
  return parts.join(', ')
}
