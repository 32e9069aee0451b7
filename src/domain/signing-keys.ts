import { createPrivateKey, createPublicKey, type JsonWebKey } from 'node:crypto'
import { SigningKey } from '../persistence/models/signing-key.js'
import type { Pod } from '../pod.js'

/** The only one there is; clients look it up by this name. */
const KID = 'default'

/** The private key of the ID tokens of this pod. It is made when it is first needed and kept; of several processes, one makes it. */
export async function signingKey(pod: Pick<Pod, 'db' | 'crypto' | 'secrets'>): Promise<JsonWebKey> {
  const kept = (await SigningKey.query(pod.db).findById(KID)) ?? (await makeKey(pod))
  const key = createPrivateKey(pod.secrets.unseal(kept.sealedPrivateKey, 'id tokens')).export({ format: 'jwk' })
  return { ...key, ...MARKS }
}

const MARKS = { kid: KID, use: 'sig', alg: 'RS256' }

async function makeKey({ db, crypto, secrets }: Pick<Pod, 'db' | 'crypto' | 'secrets'>): Promise<SigningKey> {
  const { publicKey, privateKey } = await crypto.generateKeyPair()
  const publicJwk = { ...createPublicKey(publicKey).export({ format: 'jwk' }), ...MARKS }
  await SigningKey.query(db)
    .insert({ kid: KID, sealedPrivateKey: secrets.seal(privateKey, 'id tokens'), publicJwk })
    .onConflict('kid')
    .ignore()
  return SigningKey.query(db).findById(KID).throwIfNotFound()
}
