import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'

/** The sealed address of the Redis that the last start has used; null: the queue was in this database. Undefined: nothing is known. */
export async function findQueueStore(db: Knex): Promise<Buffer | null | undefined> {
  const [store] = await queryRows<{ readonly redisUrl: Buffer | null }>(
    db,
    'select redis_url as "redisUrl" from queue_store',
  )
  return store?.redisUrl
}

export async function recordQueueStore(db: Knex, redisUrl: Buffer | null): Promise<void> {
  await db.raw(
    `insert into queue_store (redis_url) values (:redisUrl)
     on conflict (id) do update set redis_url = excluded.redis_url`,
    { redisUrl },
  )
}
