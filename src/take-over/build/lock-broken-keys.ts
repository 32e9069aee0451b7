import type pg from 'pg'
import { NOW_SQL } from '../../persistence/sql/database-time.js'
import type { Secrets } from '../../services/services.js'
import { isPair } from '../preflight/key-pairs.js'

const BATCH_SIZE = 200

interface StoredKey {
  readonly id: number
  readonly sealed: Buffer
  readonly publicKey: string
}

/** Locks open accounts whose keys do not fit: no pod could verify their messages. Returns their number. */
export async function lockBrokenKeys(session: pg.Client, secrets: Secrets): Promise<number> {
  let lockedAccounts = 0
  for (let after = 0; ; ) {
    const { rows } = await session.query<StoredKey>(
      `select users.id::float as id, sealed_private_key as sealed, people.public_key as "publicKey"
       from users join user_secrets on user_secrets.user_id = users.id join people on people.id = users.person_id
       where users.id > $1 and users.closed_at is null order by users.id limit ${BATCH_SIZE}`,
      [after],
    )
    const brokenRows = rows.filter(
      ({ id, sealed, publicKey }) => !isPair({ publicKey, privateKey: secrets.decrypt(sealed, `user ${id}`) }),
    )
    await session.query(`update users set locked_at = coalesce(locked_at, ${NOW_SQL}) where id = any($1)`, [
      brokenRows.map(({ id }) => id),
    ])
    lockedAccounts += brokenRows.length
    if (rows.length < BATCH_SIZE) return lockedAccounts
    after = rows.at(-1)?.id ?? after
  }
}
