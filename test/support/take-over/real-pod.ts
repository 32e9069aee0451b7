import { execFileSync } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type OpenDatabase, openEmptyDatabase } from '../databases/test-database.js'
import { openTestTarget, type TestTarget } from './take-over-target.js'

/** A folder with the database and the pictures of a real diaspora* 0.9. Empty: the folder is not set, and its tests are skipped. */
export const REAL_POD = process.env['DIASPORA_FIXTURES'] ?? ''

export interface RealPod {
  readonly old: OpenDatabase
  /** The database that takes over the pod. */
  readonly taken: TestTarget
  /** The folder for `--uploads`. */
  readonly uploads: string
  close(): Promise<void>
}

/** Loads the database of the real pod, and unpacks its pictures below the folder of the target. */
export async function openRealPod(): Promise<RealPod> {
  const old = await openEmptyDatabase()
  const taken = await openTestTarget(old.url, 'http://localhost:4500')
  const uploads = join(taken.folder, 'old')
  await mkdir(join(uploads, 'images'), { recursive: true })
  const database = join(REAL_POD, 'database.dump')
  execFileSync('pg_restore', ['--no-owner', '--no-privileges', '--dbname', old.url, database], { stdio: 'ignore' })
  execFileSync('tar', ['xzf', join(REAL_POD, 'uploads-images.tar.gz'), '-C', join(uploads, 'images')])
  return {
    old,
    taken,
    uploads,
    async close() {
      await taken.close()
      await old.close()
    },
  }
}
