import type { KeyObject } from 'node:crypto'
import { UserSecrets } from '../../persistence/models/user.js'
import type { SecretOwner, Services } from '../../services/services.js'

/** Loads the private key of a local person. Callers pass it to the crypto threads. */
export async function loadPrivateKey(services: Pick<Services, 'db' | 'secrets'>, personId: number): Promise<KeyObject> {
  const userSecrets = await UserSecrets.findByPerson(services.db, personId)
  if (userSecrets === undefined) throw new Error(`Person ${personId} has no private key on this pod.`)
  return decryptPrivateKey(services.secrets, `user ${userSecrets.userId}`, userSecrets.sealedPrivateKey)
}

/** Decrypts a private key on the calling thread. Callers pass the key to the crypto threads. */
export function decryptPrivateKey(secrets: Services['secrets'], owner: SecretOwner, sealed: Buffer): KeyObject {
  const key = secrets.decryptPrivateKey(sealed, owner)
  if (key === undefined) throw new Error(`The private key of ${owner} cannot be parsed.`)
  return key
}

/** Decrypts a stored private key, whether it is bound to its user or not. Throws if the secret key of the pod is another one. */
export function decryptStoredPrivateKey(
  secrets: Services['secrets'],
  { userId, sealedPrivateKey, bound }: Pick<UserSecrets, 'userId' | 'sealedPrivateKey' | 'bound'>,
): string {
  return bound ? secrets.decrypt(sealedPrivateKey, `user ${userId}`) : secrets.decryptUnbound(sealedPrivateKey)
}

const KEY_BATCH_SIZE = 200

/**
 * Encrypts private keys of an earlier version again, bound to their users; returns how many. It runs at start, because `loadPrivateKey`
 * decrypts bound keys only.
 */
export async function bindPrivateKeys({ db, secrets }: Pick<Services, 'db' | 'secrets'>): Promise<number> {
  for (let bound = 0; ; ) {
    const count = await db.transaction(async (transaction) => {
      const rows = await UserSecrets.query(transaction)
        .where({ bound: false })
        .orderBy('userId')
        .limit(KEY_BATCH_SIZE)
        .forUpdate()
      for (const { userId, sealedPrivateKey } of rows) {
        const owner = `user ${userId}` as const
        const boundKey = secrets.encrypt(secrets.decryptUnbound(sealedPrivateKey), owner)
        await UserSecrets.query(transaction).findById(userId).patch({ sealedPrivateKey: boundKey, bound: true })
      }
      return rows.length
    })
    bound += count
    if (count < KEY_BATCH_SIZE) return bound
  }
}
