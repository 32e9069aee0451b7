import type { Knex } from 'knex'

/** The account that signs for the pod. It is not a person. */
export interface PodAccountRow {
  readonly guid: string
  readonly address: string
  readonly publicKey: string
  readonly sealedPrivateKey: Buffer
}

/** Undefined: it is not made yet. */
export async function findPodAccount(db: Knex): Promise<PodAccountRow | undefined> {
  return db('podAccount').first('guid', 'address', 'publicKey', 'sealedPrivateKey')
}

/** Does nothing if another process has made the account in the meantime. */
export async function insertPodAccount(db: Knex, account: PodAccountRow): Promise<void> {
  await db('podAccount').insert(account).onConflict().ignore()
}
