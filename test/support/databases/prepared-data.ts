import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { startEmbeddedPostgres } from '../../../embedded-postgres/embedded-postgres.js'
import { hasCode } from '../../../src/errors/thrown.js'
import { createTables } from './create-tables.js'

/**
 * Fills a data folder with an embedded database that has all tables and no rows. The first call of a test run makes the database, and later
 * calls copy it: `initdb` and the migrations take many times longer. Outside of a test run, the folder stays as it is.
 */
export async function copyPreparedData(dataDir: string): Promise<void> {
  const runFolder = process.env['PREPARED_DATA']
  if (runFolder === undefined) return
  const prepared = join(runFolder, 'prepared')
  if (!existsSync(prepared)) await prepare(runFolder, prepared)
  await mkdir(dataDir, { recursive: true })
  await promisify(execFile)('cp', ['-pR', join(prepared, 'postgres'), dataDir])
}

/** Creates the database under a temporary name, because another test file may do the same at the same time. */
async function prepare(runFolder: string, prepared: string): Promise<void> {
  const draft = await mkdtemp(join(runFolder, 'prepared.new-'))
  const server = await startEmbeddedPostgres(draft, { fast: true })
  try {
    await createTables(server.url)
  } finally {
    await server.stop()
  }
  // All copies would use the port in this file.
  await rm(join(draft, 'postgres', 'postmaster.opts'))
  try {
    await rename(draft, prepared)
  } catch (error) {
    await rm(draft, { recursive: true, force: true, maxRetries: 20 })
    if (!hasCode(error, 'ENOTEMPTY', 'EEXIST')) throw error
  }
}
