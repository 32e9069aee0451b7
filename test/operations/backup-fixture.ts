import { mkdtemp, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Knex } from 'knex'
import { readConfig } from '../../src/config/config.js'
import { createBackup } from '../../src/operations/backup/create-backup.js'
import { generateBackupKey } from '../../src/operations/backup/encryption.js'
import type { Manifest } from '../../src/operations/backup/manifest.js'
import { openRepository, type Repository } from '../../src/operations/backup/repositories/repository.js'
import { type Restored, type RestoreOptions, restoreBackup } from '../../src/operations/backup/restore-backup.js'
import { checkRestore } from '../../src/operations/backup/restore-checks.js'
import { openEmptyDatabase } from '../support/databases/test-database.js'
import { memoryFolder } from '../support/files/memory-folder.js'
import { buildPod, type PodOptions, type TestPod } from '../support/pods/build-pod.js'

export const SECRET_KEY = 'a key that is only good for tests'

/** A pod with a repository for its backups. */
export interface BackedUpPod extends TestPod {
  readonly folder: string
  readonly uploadsDir: string
  readonly repository: Repository
  readonly repositoryFolder: string
  readonly identity: string
  readonly recipient: string
  backUp(options?: Partial<Parameters<typeof createBackup>[1]>): Promise<Manifest>
}

const UNINTERRUPTED = { signal: new AbortController().signal, report: () => undefined }

export async function startBackedUpPod(options: PodOptions = {}): Promise<BackedUpPod> {
  const folder = await mkdtemp(join(memoryFolder(), 'pod-backup-test-'))
  const uploadsDir = join(folder, 'uploads')
  const repositoryFolder = join(folder, 'backups of the pod')
  const environment = { DATA_DIR: folder, UPLOADS_DIR: uploadsDir, SECRET_KEY, ...options.environment }
  // With the time limits of a worker: a busy machine takes seconds for the large row of a test.
  const pod = await buildPod({ process: 'worker', ...options, environment })
  const { identity, recipient } = await generateBackupKey()
  const repository = openRepository(repositoryFolder, undefined)
  return {
    ...pod,
    folder,
    uploadsDir,
    repository,
    repositoryFolder,
    identity,
    recipient,
    backUp: (more) =>
      createBackup(pod.pod, { repository, recipients: [recipient], settings: [], ...UNINTERRUPTED, ...more }),
    async close() {
      await pod.close()
      await rm(folder, { recursive: true, force: true })
    },
  }
}

/** An empty database and empty folders. */
export interface RestorePlace extends AsyncDisposable {
  readonly db: Knex
  readonly url: string
  readonly dataDir: string
  readonly uploadsDir: string
  restore(manifest: Manifest, options: RestoreInput): Promise<Restored>
}

type RestoreInput = Pick<RestoreOptions, 'repository' | 'identities'> &
  Partial<RestoreOptions> & {
    readonly host?: string
    readonly secretKey?: string
    readonly environment?: NodeJS.ProcessEnv
  }

export async function openRestorePlace(): Promise<RestorePlace> {
  const database = await openEmptyDatabase()
  const dataDir = await mkdtemp(join(memoryFolder(), 'pod-restore-test-'))
  const uploadsDir = join(dataDir, 'uploads')
  return {
    db: database.db,
    url: database.url,
    dataDir,
    uploadsDir,
    async restore(manifest, { host = 'pod.example', secretKey, environment, ...options }) {
      const config = readConfig({
        POD_URL: `https://${host}`,
        DATA_DIR: dataDir,
        UPLOADS_DIR: uploadsDir,
        DATABASE_URL: database.url,
        ...environment,
        ...(secretKey !== undefined && { SECRET_KEY: secretKey }),
      })
      await checkRestore(manifest, config)
      return restoreBackup(manifest, config, database.url, {
        replace: false,
        shouldEndTokens: false,
        ...UNINTERRUPTED,
        ...options,
      })
    },
    async [Symbol.asyncDispose]() {
      await database.close()
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

/** All rows of all tables as text, in an order of their own, without the tables that backups leave out. */
export async function rowsOf(db: Knex): Promise<Readonly<Record<string, readonly string[]>>> {
  const { rows: tables } = await db.raw(`
    select relname as name from pg_class
    where relnamespace = 'public'::regnamespace and relkind = 'r' and relpersistence = 'p'
      and relname not in ('backup_runs', 'figures', 'idempotency_keys', 'oidc_records', 'prune_progress', 'queue_store', 'refused_uploads', 'knex_migrations', 'knex_migrations_lock')
    order by 1`)
  const found: Record<string, string[]> = {}
  for (const { name } of tables) {
    const { rows } = await db.raw(`select row_to_json(found)::text as text from ?? as found order by 1`, [name])
    found[name] = rows.map(({ text }: { readonly text: string }) => text)
  }
  return found
}

/** Tables with their columns, keys, indexes and triggers. */
export async function schemaOf(db: Knex): Promise<readonly string[]> {
  const { rows } = await db.raw(`
    select concat_ws(' ', conrelid::regclass, conname, pg_get_constraintdef(oid)) as text
      from pg_constraint where connamespace = 'public'::regnamespace
    union all select indexdef from pg_indexes where schemaname = 'public'
    union all select concat_ws(' ', tgrelid::regclass, tgname, tgenabled) from pg_trigger where not tgisinternal
    union all select concat_ws(' ', table_name, column_name, data_type, is_generated)
      from information_schema.columns where table_schema = 'public'
    order by 1`)
  return rows.map(({ text }: { readonly text: string }) => text)
}
