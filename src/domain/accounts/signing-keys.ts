import { createPrivateKey, createPublicKey, type JsonWebKey } from 'node:crypto'
import { SigningKey } from '../../persistence/models/signing-key.js'
import type { Pod } from '../../pod/pod.js'

/** The only one there is; clients look it up by this name. */
const KID = 'default'

/** The private key of the ID tokens of this pod. It is made when it is first needed and kept; of several processes, one makes it. */
export async function signingKey(pod: Pick<Pod, 'db' | 'crypto' | 'secrets'>): Promise<JsonWebKey> {
  const kept = (await SigningKey.query(pod.db).findById(KID)) ?? (await makeKey(pod))
  const key = createPrivateKey(await textOf(pod, kept)).export({ format: 'jwk' })
  return { ...key, ...MARKS }
}

/** One that an earlier version has sealed is bound to its use. */
async function textOf(
  { db, secrets }: Pick<Pod, 'db' | 'secrets'>,
  { kid, sealedPrivateKey }: SigningKey,
): Promise<string> {
  try {
    return secrets.unseal(sealedPrivateKey, 'id tokens')
  } catch {
    const text = secrets.unsealUnbound(sealedPrivateKey)
    await SigningKey.query(db)
      .findById(kid)
      .patch({ sealedPrivateKey: secrets.seal(text, 'id tokens') })
    return text
  }
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
