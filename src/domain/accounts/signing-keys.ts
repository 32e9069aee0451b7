import { createPrivateKey, createPublicKey, type JsonWebKey } from 'node:crypto'
import { SigningKey } from '../../persistence/models/signing-key.js'
import type { Services } from '../../services/services.js'

/** Key id of the only signing key, by which clients look it up. */
const KID = 'default'

/** Loads the private key that signs ID tokens. It is created on first use; of several processes, the first insert wins. */
export async function loadSigningKey(services: Pick<Services, 'db' | 'crypto' | 'secrets'>): Promise<JsonWebKey> {
  const storedKey = (await SigningKey.query(services.db).findById(KID)) ?? (await createSigningKey(services))
  const key = createPrivateKey(await decryptSigningKey(services, storedKey)).export({ format: 'jwk' })
  return { ...key, ...KEY_PARAMETERS }
}

/** Decrypts the key. A key that an earlier version encrypted without its purpose is encrypted again with it. */
async function decryptSigningKey(
  { db, secrets }: Pick<Services, 'db' | 'secrets'>,
  { kid, sealedPrivateKey }: SigningKey,
): Promise<string> {
  try {
    return secrets.decrypt(sealedPrivateKey, 'id tokens')
  } catch {
    const text = secrets.decryptUnbound(sealedPrivateKey)
    await SigningKey.query(db)
      .findById(kid)
      .patch({ sealedPrivateKey: secrets.encrypt(text, 'id tokens') })
    return text
  }
}

const KEY_PARAMETERS = { kid: KID, use: 'sig', alg: 'RS256' }

async function createSigningKey({
  db,
  crypto,
  secrets,
}: Pick<Services, 'db' | 'crypto' | 'secrets'>): Promise<SigningKey> {
  const { publicKey, privateKey } = await crypto.generateKeyPair()
  const publicJwk = { ...createPublicKey(publicKey).export({ format: 'jwk' }), ...KEY_PARAMETERS }
  await SigningKey.query(db)
    .insert({ kid: KID, sealedPrivateKey: secrets.encrypt(privateKey, 'id tokens'), publicJwk })
    .onConflict('kid')
    .ignore()
  return SigningKey.query(db).findById(KID).throwIfNotFound()
}
