import type { KeyObject } from 'node:crypto'
import { UserSecrets } from '../persistence/models/user.js'
import type { Pod } from '../pod.js'
import { readPrivateKey } from '../protocol/rsa.js'

/** The key of somebody who lives here, to be used in a thread and forgotten. */
export async function privateKeyOf(pod: Pick<Pod, 'db' | 'secrets'>, personId: number): Promise<KeyObject> {
  const kept = await UserSecrets.ofPerson(pod.db, personId)
  if (kept === undefined) throw new Error(`Person ${personId} has no private key here.`)
  const key = readPrivateKey(pod.secrets.unseal(kept.sealedPrivateKey))
  if (key === undefined) throw new Error(`The private key of person ${personId} cannot be used.`)
  return key
}
