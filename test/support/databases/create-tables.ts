import { migrateQueue } from '../../../src/jobs/queues/queue-schema.js'
import { openDatabase } from '../../../src/persistence/database/database.js'
import { WORKER_DATABASE_LIMITS } from '../../../src/persistence/database/limits.js'
import { migrate } from '../../../src/persistence/database/migrate.js'

/** Creates all tables, of the pod and of the queue, in an empty database. */
export async function createTables(url: string): Promise<void> {
  const db = openDatabase({ ...WORKER_DATABASE_LIMITS, url, applicationName: 'pod migrate' })
  try {
    await migrate(db)
  } finally {
    await db.destroy()
  }
  await migrateQueue(url)
}
