import {
  assertSchemaCompatibility,
  BULLMQ_MAJOR_VERSION,
  runMigrations,
  SchemaMigrationRequiredError,
  SchemaVersionMismatchError,
} from 'bullmq'
import pg from 'pg'
import { StartError } from '../../errors/start-error.js'
import { hasCode } from '../../errors/thrown.js'
import { STORE_DATA_UNCOMPRESSED_SQL } from '../bullmq/job-data-storage.js'

/** Throws a StartError when the tables of the queue are missing or newer than this program. */
export async function checkQueueSchema(databaseUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl, connectionTimeoutMillis: 2_000, query_timeout: 2_000 })
  client.on('error', () => {})
  try {
    await client.connect()
    await assertSchemaCompatibility(client)
  } catch (error) {
    if (error instanceof SchemaMigrationRequiredError || hasCode(error, '3F000')) {
      throw new StartError('The database has no tables for the queue yet. Run "pod db migrate" first.')
    }
    if (error instanceof SchemaVersionMismatchError) {
      throw new StartError(
        `The tables of the queue were made by a newer version of this program than this one (BullMQ ${BULLMQ_MAJOR_VERSION}). Install the newer version.`,
      )
    }
    throw error
  } finally {
    await client.end().catch(() => {})
  }
}

/** Creates or updates the tables of the queue in their own schema; does nothing when they are current. */
export async function migrateQueue(databaseUrl: string): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl, connectionTimeoutMillis: 5_000 })
  client.on('error', () => {})
  await client.connect()
  try {
    await runMigrations(client)
    await client.query(STORE_DATA_UNCOMPRESSED_SQL)
  } finally {
    await client.end()
  }
}
