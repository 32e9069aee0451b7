import type { KeyObject } from 'node:crypto'
import type { Knex } from 'knex'
import type pg from 'pg'
import type { Config } from '../config/config.js'
import { DIASPORA_PEPPER } from '../domain/accounts/passwords/bcrypt-password.js'
import { migrateQueue } from '../jobs/queues/queue-schema.js'
import { isSameRedis } from '../jobs/queues/redis-address.js'
import { openUnlimitedSession, queryRow } from '../persistence/database/database.js'
import { migrate, migrationStatus } from '../persistence/database/migrate.js'
import type { ReportProgress } from '../persistence/operations/progress.js'
import { listConnectedProcesses } from '../persistence/operations/restore-target.js'
import {
  beginStep,
  deleteTakeOver,
  endStep,
  findTakeOver,
  saveSealedPepper,
  wasPodOpened,
} from '../persistence/operations/take-over-state.js'
import { readPrivateKey } from '../protocol/signatures/rsa.js'
import type { Secrets } from '../services/services.js'
import { buildTarget, emptyTarget } from './build/build-target.js'
import { lockBrokenKeys } from './build/lock-broken-keys.js'
import { deleteSigningKey, storeSigningKey } from './build/signing-key.js'
import { examineObstacles, findTargetObstacles, type PreflightReport, preflight } from './preflight/preflight.js'
import { carryJobs } from './sidekiq/carry-jobs.js'
import { requireIdleSidekiq } from './sidekiq/require-idle-sidekiq.js'
import type { CarriedJobs } from './sidekiq/stage-jobs.js'
import { openSource } from './source/open-source.js'
import { SELECT_IDENTITY_SQL } from './source/postgres-source.js'
import { readSchemaState } from './source/schema-state.js'
import type { Source } from './source/source.js'
import { type CopiedRows, copySource } from './staging/copy-source.js'
import { requireAllRows } from './staging/require-all-rows.js'
import { dropStaging } from './staging/staging-tables.js'
import { TakeOverError } from './take-over-error.js'
import { fetchFiles, isRemoteUploads } from './uploads/fetch-files.js'
import { ownPhotoPaths } from './uploads/own-photo-paths.js'
import { type TakenFiles, takeFiles, type UploadsMode } from './uploads/take-files.js'
import { requireEqual, type VerifyOptions, type VerifyReport, verifyTarget } from './verify/verify-target.js'

/** The pod that takes over: its database, which may be empty, and the key for its secrets. */
export interface TakeOverTarget {
  readonly db: Knex
  readonly url: string
  readonly config: Config
  readonly secrets: Secrets
}

export interface TakeOverOptions {
  readonly from: string
  readonly uploads: string | undefined
  readonly uploadsMode: UploadsMode
  /** The key of ID tokens of the old pod, as PEM. */
  readonly oidcKey: string | undefined
  /** Undefined: the pepper of an earlier run, or the pepper that diaspora* ships. */
  readonly pepper: string | undefined
  readonly rate: number | undefined
  readonly shouldVerifyAllSignatures: boolean
  readonly shouldLockBrokenKeys: boolean
  /** The Redis of the old pod's Sidekiq. */
  readonly sidekiq: string | undefined
  readonly mayLoseJobs: boolean
  readonly signal: AbortSignal
  readonly report: ReportProgress
}

export interface CopyReport extends CopiedRows {
  readonly files: TakenFiles | undefined
}

export interface BuildReport extends CopyReport {
  readonly buildSeconds: number
  /** Seconds of the refresh, the build and the comparison together, which a switch takes too. */
  readonly switchSeconds: number
  readonly warnings: readonly string[]
  readonly verification: VerifyReport
  /** The outcomes of the jobs of Sidekiq at the switch. */
  readonly jobs?: CarriedJobs & { readonly dead: number }
}

/** Examines both databases; with obstacles the take-over cannot continue. */
export async function examineOldPod(
  target: Omit<TakeOverTarget, 'secrets'>,
  options: TakeOverOptions,
): Promise<PreflightReport> {
  readOidcKey(options)
  requireOtherRedis(target.config, options)
  return withSource(options, (source) => preflight(target, source, options))
}

/** Copies the old database into the staging tables, and its pictures. The old pod may run in the meantime. */
export async function copyOldPod(target: TakeOverTarget, options: TakeOverOptions): Promise<CopyReport> {
  await requireUsable(target, options)
  await migrateTarget(target)
  return updateStaging(target, 'copy', options)
}

/** Copies changed rows, builds the tables of the pod and compares them with the source. */
export async function rehearse(target: TakeOverTarget, options: TakeOverOptions): Promise<BuildReport> {
  await requireUsable(target, options)
  await migrateTarget(target)
  return rebuildTarget(target, 'rehearse', options)
}

/**
 * Copies the rest and builds the pod while the old pod is stopped; afterwards this pod may start. `beforeOpening` runs when the target
 * is complete. After a failure the old pod may start again.
 */
export async function switchOver(
  target: TakeOverTarget,
  options: TakeOverOptions,
  beforeOpening: () => Promise<Readonly<Record<string, unknown>>>,
): Promise<BuildReport> {
  if ((await findTakeOver(target.db)) === undefined) {
    throw new TakeOverError('Nothing was copied yet: run "pod take-over copy" first.')
  }
  const { sidekiq, signal } = options
  await requireUsable(target, options)
  const idle = sidekiq === undefined ? undefined : await requireIdleSidekiq(sidekiq, options)
  await migrateTarget(target)
  const report = await rebuildTarget(target, 'switch', options)
  const jobs = idle && {
    ...(await withSession(target.db, (session) => carryJobs(session, sidekiq ?? '', signal))),
    dead: idle.dead,
  }
  const done = await beforeOpening()
  await endStep(target.db, {
    state: 'open',
    report: { ...done, ...(jobs && { jobs }), openedAt: new Date().toISOString() },
  })
  return { ...report, ...(jobs && { jobs }) }
}

/** Compares the target with the staging tables, without building it. */
export async function verifyBuilt(
  target: TakeOverTarget,
  options: Pick<TakeOverOptions, 'shouldVerifyAllSignatures' | 'signal' | 'report' | 'uploads' | 'uploadsMode'>,
): Promise<VerifyReport> {
  const takeOver = await findTakeOver(target.db)
  if (takeOver === undefined || takeOver.state === 'copying' || takeOver.state === 'finished') {
    throw new TakeOverError('There is nothing to verify: run "pod take-over rehearse" or "switch" first.')
  }
  return verify(target, verifyOptions(target, options, takeOver.stepStartedAt))
}

/** Empties the target and forgets the take-over and the key of ID tokens that came with it. Pictures stay. */
export async function abortTakeOver({ db }: Pick<TakeOverTarget, 'db'>): Promise<void> {
  await requireNotOpen(db)
  if ((await findTakeOver(db)) === undefined) {
    throw new TakeOverError('There is no take-over to abort: the database was not changed.')
  }
  await requireStopped(db)
  await withSession(db, async (session) => {
    await emptyTarget(session)
    await deleteSigningKey(session)
    await dropStaging(session)
  })
  await deleteTakeOver(db)
}

/** Drops the staging tables of a pod that is open. */
export async function finishTakeOver({ db }: Pick<TakeOverTarget, 'db'>): Promise<void> {
  const takeOver = await findTakeOver(db)
  if (takeOver?.state === 'finished') return
  if (takeOver?.state !== 'open') throw new TakeOverError('The pod is not open yet: "finish" comes after "switch".')
  await withSession(db, dropStaging)
  await endStep(db, { state: 'finished' })
}

/** Updates the staging tables, builds the target from them, and compares both. */
async function rebuildTarget(
  target: TakeOverTarget,
  step: 'rehearse' | 'switch',
  options: TakeOverOptions,
): Promise<BuildReport> {
  const { db, config, secrets } = target
  const stepBegan = performance.now()
  const copyReport = await updateStaging(target, step, options)
  const began = performance.now()
  const takeOver = await findTakeOver(db)
  const { signal, report } = options
  const buildSeconds = await withSession(db, async (session) => {
    await buildTarget(session, target, {
      ownPaths: ownPhotoPaths(config, options.uploads),
      builtAt: new Date(),
      signal,
      report,
    })
    if (options.shouldLockBrokenKeys) await lockBrokenKeys(session, secrets)
    const oldSigningKey = readOidcKey(options)
    const hasOldSigningKey = oldSigningKey !== undefined
    if (hasOldSigningKey) await storeSigningKey(session, secrets, oldSigningKey)
    await endStep(db, { state: 'built', report: hasOldSigningKey ? { hasOldSigningKey } : {} })
    return (performance.now() - began) / 1_000
  })
  const verification = await verify(target, verifyOptions(target, options, takeOver?.stepStartedAt))
  await endStep(db, { report: { verification } })
  requireEqual(verification)
  const switchSeconds = (performance.now() - stepBegan) / 1_000
  const warnings = await findWarnings(target, options, verification)
  return { ...copyReport, buildSeconds, switchSeconds, verification, warnings }
}

async function verify({ db }: Pick<TakeOverTarget, 'db'>, options: VerifyOptions): Promise<VerifyReport> {
  return withSession(db, (first) => withSession(db, (second) => verifyTarget([first, second], options)))
}

/** Pictures that the old pod has written since the step began may be missing here. */
function verifyOptions(
  { url, config, secrets }: TakeOverTarget,
  options: Pick<TakeOverOptions, 'shouldVerifyAllSignatures' | 'signal' | 'report' | 'uploads' | 'uploadsMode'>,
  stepStartedAt: Date | null | undefined,
): VerifyOptions {
  const isRemote = isRemoteUploads(options.uploads ?? '')
  return {
    ...options,
    config: { ...config, databaseUrl: url },
    secrets,
    uploads: options.uploadsMode === 'in-place' || isRemote ? undefined : options.uploads,
    isRemoteUploads: isRemote,
    writtenBefore: stepStartedAt ?? new Date(),
  }
}

/** Copies the changed rows of the old database into the staging tables, and its new pictures. */
async function updateStaging(target: TakeOverTarget, step: string, options: TakeOverOptions): Promise<CopyReport> {
  const { db, config, secrets } = target
  return withSource(options, (first) =>
    withSource(options, async (second) => {
      await requireOtherDatabase(db, first)
      const { newest } = readSchemaState(await first.listVersions(), await first.listTables())
      await beginStep(db, { step, state: 'copying', newestMigration: newest })
      await storePepper(db, secrets, options.pepper)
      const copyReport = await withSession(db, (firstSession) =>
        withSession(db, (secondSession) =>
          copySource(
            [
              { source: first, target: firstSession },
              { source: second, target: secondSession },
            ],
            { secrets, ...options },
          ),
        ),
      )
      if (step === 'switch') await withSession(db, (session) => requireAllRows(first, session))
      const files =
        options.uploads === undefined
          ? undefined
          : isRemoteUploads(options.uploads)
            ? await fetchFiles(options.uploads, { ...options, db, config })
            : await takeFiles(options.uploads, config.uploadsDir, { ...options, mode: options.uploadsMode })
      await endStep(db, { report: { copied: copyReport, ...(files && { files }) } })
      return { ...copyReport, files }
    }),
  )
}

async function requireUsable(target: TakeOverTarget, options: TakeOverOptions): Promise<void> {
  readOidcKey(options)
  requireOtherRedis(target.config, options)
  await requireNotOpen(target.db)
  const [obstacle] = await findTargetObstacles(target.db)
  if (obstacle !== undefined) throw new TakeOverError(`${obstacle.code}: ${obstacle.message}`)
  await requireStopped(target.db)
  const { obstacles } = await withSource(options, async (source) => {
    await requireOtherDatabase(target.db, source)
    return examineObstacles(target, source, options)
  })
  const [first] = obstacles
  if (first !== undefined) throw new TakeOverError(`${first.code}: ${first.message}`)
}

/** Stores the given pepper. Without one, the pepper of an earlier run is kept; the first run stores the pepper that diaspora* ships. */
async function storePepper(db: Knex, secrets: Secrets, pepper: string | undefined): Promise<void> {
  if (pepper === undefined && (await findTakeOver(db))?.sealedPepper) return
  await saveSealedPepper(db, secrets.encrypt(pepper ?? DIASPORA_PEPPER, 'pepper'))
}

async function requireStopped(db: Knex): Promise<void> {
  const processes = await listConnectedProcesses(db)
  if (processes.length > 0) {
    throw new TakeOverError(`The database is in use by ${processes.join(' and ')}: stop the pod first.`)
  }
}

async function requireNotOpen(db: Knex): Promise<void> {
  if (wasPodOpened(await findTakeOver(db))) {
    throw new TakeOverError('This pod is open: nothing of it is deleted or built again.')
  }
}

/** Two addresses may lead to one database. */
async function requireOtherDatabase(db: Knex, source: Source): Promise<void> {
  if (source.kind !== 'postgres') return
  const target = await queryRow<{ readonly identity: string }>(db, SELECT_IDENTITY_SQL)
  if (target.identity === (await source.identity())) {
    throw new TakeOverError('--from is the database of this pod: it must be that of the old pod.')
  }
}

/** Both pods would take jobs of each other. */
function requireOtherRedis({ redisUrl }: Config, { sidekiq }: Pick<TakeOverOptions, 'sidekiq'>): void {
  if (sidekiq === undefined || redisUrl === undefined || !isSameRedis(sidekiq, redisUrl)) return
  throw new TakeOverError('--sidekiq is the Redis of this pod: the two pods need a Redis, or a database number, each.')
}

/** Migrates the queue first: if the run ends between the two, the next run migrates both again. */
async function migrateTarget({ db, url }: TakeOverTarget): Promise<void> {
  if ((await migrationStatus(db)).pending.length === 0) return
  await migrateQueue(url)
  await migrate(db)
}

/** Undefined: no key was given. A file without an RSA key is refused before anything is copied. */
function readOidcKey({ oidcKey }: Pick<TakeOverOptions, 'oidcKey'>): KeyObject | undefined {
  if (oidcKey === undefined) return undefined
  const key = readPrivateKey(oidcKey)
  if (key === undefined) {
    throw new TakeOverError('The file of --oidc-key holds no RSA private key: name config/oidc_key.pem of the old pod.')
  }
  return key
}

/** Settings that are allowed, and that an operator should know about. */
async function findWarnings(
  { db, config }: Pick<TakeOverTarget, 'db' | 'config'>,
  { oidcKey, uploads, uploadsMode, sidekiq, mayLoseJobs }: TakeOverOptions,
  { originals }: VerifyReport,
): Promise<readonly string[]> {
  const hasOldKey = oidcKey !== undefined || (await findTakeOver(db))?.report['hasOldSigningKey'] === true
  const isFolderUnused = config.storage === 's3' && config.uploadsFallback !== 'folder'
  return [
    ...(hasOldKey
      ? []
      : [
          'Without --oidc-key, applications get a new key for ID tokens; some refuse it until their users sign in again.',
        ]),
    ...(sidekiq === undefined && !mayLoseJobs
      ? [
          'Without --sidekiq, jobs that wait in the Redis of the old pod are neither counted nor continued: its Sidekiq must have finished them. --lose-jobs confirms that.',
        ]
      : []),
    ...(uploadsMode === 'in-place'
      ? [
          'With --uploads-mode in-place, pictures that this pod deletes are missing in the old pod, and unfinished uploads are in the folder of the old web server.',
        ]
      : []),
    ...(originals !== undefined && originals.missing > 0
      ? [`${originals.missing} of ${originals.photos} photos of users have no original at ${uploads}.`]
      : []),
    ...(uploads !== undefined && isFolderUnused
      ? ['The pictures are copied into UPLOADS_DIR: with STORAGE=s3, set UPLOADS_FALLBACK=folder to serve them.']
      : []),
  ]
}

async function withSource<Result>(
  { from }: TakeOverOptions,
  run: (source: Source) => Promise<Result>,
): Promise<Result> {
  const source = await openSource(from)
  try {
    return await run(source)
  } finally {
    await source.close().catch(() => undefined)
  }
}

async function withSession<Result>(db: Knex, run: (session: pg.Client) => Promise<Result>): Promise<Result> {
  const session = await openUnlimitedSession(db, 'take-over')
  try {
    return await run(session)
  } finally {
    await session.end().catch(() => undefined)
  }
}
