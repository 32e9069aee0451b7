import { execFileSync } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'

/** A folder with the database and the pictures of a real diaspora* 0.9; empty: there is none, and tests that need it are left out. */
export const REAL_POD = process.env['DIASPORA_FIXTURES'] ?? ''

/** Loads the database of the real pod, and unpacks its pictures below the folder. Returns the folder for `--uploads`. */
export async function restoreRealPod(databaseUrl: string, folder: string): Promise<string> {
  const uploads = join(folder, 'old')
  await mkdir(join(uploads, 'images'), { recursive: true })
  const database = join(REAL_POD, 'database.dump')
  execFileSync('pg_restore', ['--no-owner', '--no-privileges', '--dbname', databaseUrl, database], { stdio: 'ignore' })
  execFileSync('tar', ['xzf', join(REAL_POD, 'uploads-images.tar.gz'), '-C', join(uploads, 'images')])
  return uploads
}
