import type { KeyObject } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { UserSecrets } from '../../persistence/models/user.js'
import type { Pod, SecretOwner } from '../../pod/pod.js'
import { readPrivateKey } from '../../protocol/signatures/rsa.js'
import { ACCOUNT_LIMITS } from './limits.js'

/** Loads the private key of a local person. Callers pass it to the crypto threads. */
export async function loadPrivateKey(pod: Pick<Pod, 'db' | 'secrets'>, personId: number): Promise<KeyObject> {
  const userSecrets = await UserSecrets.findByPerson(pod.db, personId)
  if (userSecrets === undefined) throw new Error(`Person ${personId} has no private key on this pod.`)
  return decryptPrivateKey(pod.secrets, `user ${userSecrets.userId}`, userSecrets.sealedPrivateKey)
}

/**
 * Private keys by owner and sealed bytes, so that no owner can get the key of another one. Unsealing and parsing a key takes longer
 * than checking a signature.
 */
const opened = new LRUCache<string, KeyObject>({ max: ACCOUNT_LIMITS.privateKeysKept })

/** Opens a sealed private key on the calling thread. Callers pass the key to the crypto threads. */
export function decryptPrivateKey(secrets: Pod['secrets'], owner: SecretOwner, sealed: Buffer): KeyObject {
  const name = `${owner} ${sealed.toString('base64')}`
  const key = opened.get(name) ?? readPrivateKey(secrets.unseal(sealed, owner))
  if (key === undefined) throw new Error(`The private key of ${owner} cannot be parsed.`)
  opened.set(name, key)
  return key
}

/** Unseals a private key, whether it is bound to its user or not. Throws if the secret key of the pod is another one. */
export function unsealPrivateKey(
  secrets: Pod['secrets'],
  { userId, sealedPrivateKey, bound }: Pick<UserSecrets, 'userId' | 'sealedPrivateKey' | 'bound'>,
): string {
  return bound ? secrets.unseal(sealedPrivateKey, `user ${userId}`) : secrets.unsealUnbound(sealedPrivateKey)
}

const KEY_BATCH_SIZE = 200

/**
 * Seals private keys of an earlier version again, bound to their users; returns how many. It runs at start, because `loadPrivateKey`
 * opens bound keys only.
 */
export async function bindPrivateKeys({ db, secrets }: Pick<Pod, 'db' | 'secrets'>): Promise<number> {
  for (let bound = 0; ; ) {
    const count = await db.transaction(async (transaction) => {
      const rows = await UserSecrets.query(transaction)
        .where({ bound: false })
        .orderBy('userId')
        .limit(KEY_BATCH_SIZE)
        .forUpdate()
      for (const { userId, sealedPrivateKey } of rows) {
        const owner = `user ${userId}` as const
        const sealed = secrets.seal(secrets.unsealUnbound(sealedPrivateKey), owner)
        await UserSecrets.query(transaction).findById(userId).patch({ sealedPrivateKey: sealed, bound: true })
      }
      return rows.length
    })
    bound += count
    if (count < KEY_BATCH_SIZE) return bound
  }
}
