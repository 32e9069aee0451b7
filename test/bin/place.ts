import { createTestDatabase } from '../support/databases/test-database.js'
import { makeFolder, type Settings } from './program.js'

/** A folder and a database for the programs of one test file. */
export interface Place {
  readonly folder: string
  readonly databaseUrl: string
  /** Environment that points a program to this place, merged with other variables. */
  readonly settings: Settings
  remove(): Promise<void>
}

/** The address of a publicly reachable pod. */
export const KNOWN_POD = { POD_URL: 'https://pod.example', SECRET_KEY: 'a key that is only good for these tests' }

export async function makePlace(more: Settings = {}): Promise<Place> {
  const folder = await makeFolder()
  const database = await createTestDatabase()
  return {
    folder: folder.path,
    databaseUrl: database.url,
    settings: { DATABASE_URL: database.url, DATA_DIR: folder.path, ...more },
    async remove() {
      await database.drop()
      await folder.remove()
    },
  }
}
