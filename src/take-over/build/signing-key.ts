import { createPublicKey, type KeyObject } from 'node:crypto'
import type pg from 'pg'
import type { Secrets } from '../../services/services.js'

/** Stores the key of ID tokens of the old pod as that of this pod. */
export async function storeSigningKey(session: pg.Client, secrets: Secrets, key: KeyObject): Promise<void> {
  const pem = key.export({ type: 'pkcs8', format: 'pem' }).toString()
  const jwk = createPublicKey(key).export({ format: 'jwk' })
  await session.query(
    `insert into signing_keys (kid, sealed_private_key, public_jwk) values ('default', $1, $2)
     on conflict (kid) do update set sealed_private_key = excluded.sealed_private_key, public_jwk = excluded.public_jwk`,
    [secrets.encrypt(pem, 'id tokens'), JSON.stringify({ ...jwk, kid: 'default', use: 'sig', alg: 'RS256' })],
  )
}

/** Deletes that key. */
export async function deleteSigningKey(session: pg.Client): Promise<void> {
  await session.query(`delete from signing_keys where kid = 'default'`)
}
