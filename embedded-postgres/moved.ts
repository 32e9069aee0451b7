import { existsSync } from 'node:fs'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { EmbeddedPostgresError } from './errors.js'

/** This file is in a data folder whose database was moved to another server. */
const markFile = (dataDir: string) => join(dataDir, 'database-was-moved')

/** A pod that started on the old database would continue from an old state. */
export function refuseMovedDatabase(dataDir: string): void {
  if (!existsSync(markFile(dataDir))) return
  throw new EmbeddedPostgresError(
    `The database of ${dataDir} was moved to another server: set DATABASE_URL to it. To go back to the old state, delete the file ${markFile(dataDir)}.`,
  )
}

export async function markMovedDatabase(dataDir: string): Promise<void> {
  await writeFile(markFile(dataDir), 'The database of the pod is on another server since this file was written.\n')
}

export async function unmarkMovedDatabase(dataDir: string): Promise<void> {
  await rm(markFile(dataDir), { force: true })
}
