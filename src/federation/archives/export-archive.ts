import { createHash } from 'node:crypto'
import { access, open, rename, rm } from 'node:fs/promises'
import { Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import type { Actor } from '../../domain/moderation/actor.js'
import { auditContext } from '../../domain/moderation/record-action.js'
import { Refusal } from '../../domain/refusals.js'
import { hasCode } from '../../errors/thrown.js'
import type { ExportKind } from '../../persistence/archives/exports.js'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { User } from '../../persistence/models/user.js'
import { appendAuditEntry } from '../../persistence/moderation/audit-log.js'
import type { Services } from '../../services/services.js'
import { type ArchiveDependencies, writeArchive } from './write-archive.js'
import { writePhotosZip } from './write-photos-zip.js'

export type ExportDependencies = ArchiveDependencies & Pick<Services, 'requestContext' | 'pictures' | 'now'>

export interface ExportProgress {
  readonly section: string
  readonly done: number
}

export interface ExportRun {
  readonly username: string
  readonly kind: ExportKind
  /** Must not exist. It is removed again if the export fails. */
  readonly file: string
  /** The share of the time that the writing of an archive may take, up to 1. Default: all. */
  readonly share?: number
  readonly signal?: AbortSignal | undefined
  reportProgress?(progress: ExportProgress): void
}

export interface ExportedFile {
  readonly file: string
  readonly bytes: number
  readonly sha256: string
  /** Relayables of others without a signature that can be made here. */
  readonly leftOut: number
}

/**
 * Writes an export to a new file, which gets its name when it is complete. A killed process leaves `….partial`, which the next export does
 * not overwrite: another process may write it.
 */
export async function exportToNewFile(source: ExportDependencies, run: ExportRun): Promise<ExportedFile> {
  await refuseExisting(run.file)
  const partial = `${run.file}.partial`
  const exportResult = await exportToFile(source, { ...run, file: partial })
  try {
    await refuseExisting(run.file)
    await rename(partial, run.file)
  } catch (error) {
    await rm(partial, { force: true })
    throw error
  }
  return { ...exportResult, file: run.file }
}

async function refuseExisting(file: string): Promise<void> {
  const exists = await access(file).then(
    () => true,
    () => false,
  )
  if (exists) throw new Refusal('file_exists', `The file ${file} exists already.`)
}

/** Writes an export of an account to a file that only the owner of the process can read. */
export async function exportToFile(source: ExportDependencies, run: ExportRun): Promise<ExportedFile> {
  let leftOut = 0
  const output = await open(run.file, 'wx', 0o600).catch((error: unknown) => {
    if (hasCode(error, 'EEXIST')) throw new Refusal('file_exists', `The file ${run.file} exists already.`)
    throw error
  })
  try {
    const content = exportContent(source, run, (count) => {
      leftOut += count
    })
    const { digest, stream } = createDigestStream()
    const options = run.signal === undefined ? {} : { signal: run.signal }
    await pipeline([...content, stream, output.createWriteStream({ flush: true })], options)
    return { file: run.file, leftOut, ...digest() }
  } catch (error) {
    await rm(run.file, { force: true })
    throw error
  }
}

/** The content of an export, and the streams through which it goes. */
function exportContent(
  source: ExportDependencies,
  run: ExportRun,
  countLeftOut: (count: number) => void,
): (Readable | Transform)[] {
  const { username, kind, share, signal } = run
  const reportProgress = (section: string, done: number) => run.reportProgress?.({ section, done })
  if (kind === 'photos') return [writePhotosZip(source, username, { reportProgress })]
  const archive = writeArchive(source, {
    username,
    shouldIncludeKey: kind === 'archive',
    upTo: source.now(),
    reportProgress,
    countLeftOut,
    ...(share !== undefined && { share }),
    ...(signal && { signal }),
  })
  return [Readable.from(archive), createGzip()]
}

/** Passes bytes on and computes their number and SHA-256. */
function createDigestStream() {
  const hash = createHash('sha256')
  let bytes = 0
  const stream = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      hash.update(chunk)
      bytes += chunk.length
      done(null, chunk)
    },
  })
  return { stream, digest: () => ({ bytes, sha256: hash.digest('hex') }) }
}

/** An export contains everything of a person: the audit log says who made it. */
export async function recordExport(
  services: Pick<Services, 'db' | 'requestContext' | 'now'>,
  actor: Actor,
  { username, kind }: Pick<ExportRun, 'username' | 'kind'>,
): Promise<void> {
  await inRequestTransaction(services, async (transaction) => {
    const user = await User.byUsername(transaction, username)
    const entry = {
      ...auditContext(actor),
      action: 'archive.export',
      target: { type: 'person', guid: user?.person?.guid ?? null, label: username },
      after: { kind },
    }
    await appendAuditEntry(transaction, entry, services.now())
  })
}
