import { createPublicKey } from 'node:crypto'
import { readPrivateKey, readPublicKey } from '../../protocol/signatures/rsa.js'
import type { Source } from '../source/source.js'

interface BrokenKey {
  readonly guid: string
  readonly isClosed: boolean
}

export interface KeyPairs {
  readonly checked: number
  readonly broken: readonly BrokenKey[]
}

interface KeyRow {
  readonly id: number
  readonly guid: string
  readonly publicKey: string
  readonly privateKey: string | null
  readonly isClosed: boolean
}

const BATCH_SIZE = 200

/** Compares the keys of all accounts. A closed account needs its key too, to answer pods that still write to it. */
export async function checkKeyPairs(source: Source): Promise<KeyPairs> {
  const broken: BrokenKey[] = []
  let checked = 0
  for (let after = 0; ; ) {
    const rows = await source.query<KeyRow>(SELECT_KEYS_SQL, [after, BATCH_SIZE])
    const last = rows.at(-1)
    if (last === undefined) return { checked, broken }
    after = last.id
    checked += rows.length
    for (const { guid, isClosed, ...keys } of rows) if (!isPair(keys)) broken.push({ guid, isClosed })
  }
}

/** Whether a private key as PEM has this public key. */
export function isPair({ publicKey, privateKey }: Pick<KeyRow, 'publicKey' | 'privateKey'>): boolean {
  const publicKeyObject = readPublicKey(publicKey)
  const key = readPrivateKey(privateKey ?? '')
  if (publicKeyObject === undefined || key === undefined) return false
  return createPublicKey(key).export({ format: 'jwk' }).n === publicKeyObject.export({ format: 'jwk' }).n
}

const SELECT_KEYS_SQL = `
  select users.id::float as id, people.guid, people.serialized_public_key as "publicKey",
    users.serialized_private_key as "privateKey", coalesce(people.closed_account, false) as "isClosed"
  from users join people on people.owner_id = users.id
  where users.id > $1 order by users.id limit $2`
