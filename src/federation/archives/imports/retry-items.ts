import { Refusal } from '../../../domain/refusals.js'
import {
  claimRetry,
  findDueRetries,
  findRetriedItems,
  type RetriedItems,
  replaceOutcomes,
  setRetry,
} from '../../../persistence/archives/import-retries.js'
import type { ArchiveImport } from '../../../persistence/archives/imports.js'
import { saveSplitBytes } from '../../../persistence/archives/upload-space.js'
import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import { DAY_MS } from '../../../protocol/durations.js'
import type { Services } from '../../../services/services.js'
import { IMPORT_LIMITS } from '../limits.js'
import { readItems } from '../reading/items-of-version.js'
import {
  deleteSpool,
  finishKeeping,
  isFolder,
  keepChosenItems,
  type SpooledItem,
  spooledBatches,
} from '../reading/spool-archive.js'
import { importFolder } from './begin-import.js'
import type { ImportContext } from './import-context.js'
import { openImportContext } from './import-run-context.js'
import { type BatchImporter, CONTENT_IMPORTERS, PRIVATE_IMPORTERS, RELATION_IMPORTERS } from './list-importers.js'

const HOUR_MS = 60 * 60_000

const IMPORTERS: readonly BatchImporter[] = [...RELATION_IMPORTERS, ...CONTENT_IMPORTERS, ...PRIVATE_IMPORTERS]

/** Keeps the items of an ended import that are tried again, and deletes the others. */
export async function keepForRetry(
  services: Services,
  ended: Pick<ArchiveImport, 'id' | 'uid'>,
  retries: number,
): Promise<void> {
  const folder = importFolder(services, ended)
  const items = await findRetriedItems(services.db, ended.id)
  if (items.size === 0 || retries >= IMPORT_LIMITS.retryHours.length) {
    await setRetry(services.db, ended.id, null)
    return deleteSpool(folder)
  }
  const hasRelayables = items.has('relayables')
  const bytes = await keepChosenItems(
    folder,
    (list, position) => isRetried(items, list, position) || (list === 'others_posts' && hasRelayables),
  )
  await saveSplitBytes(services.db, ended.uid, bytes)
  await setRetry(services.db, ended.id, retryTime(services.now(), retries))
}

/** When the items of an import are tried again after so many repetitions; null: never. */
export function retryTime(now: Date, retries: number): Date | null {
  const hours = IMPORT_LIMITS.retryHours[retries]
  return hours === undefined ? null : new Date(now.getTime() + hours * HOUR_MS)
}

function isRetried(items: RetriedItems, list: string, position: number): boolean {
  const importer = IMPORTERS.find((known) => known.list === list)
  return importer !== undefined && items.get(importer.section)?.has(position) === true
}

/** Tries the due items of imports again, one import after the other. */
export async function retryItems(services: Services, signal: AbortSignal): Promise<void> {
  for (const due of await findDueRetries(services.db, services.now())) {
    if (signal.aborted) return
    const claimedImport = await claimRetryHere(services, due)
    if (claimedImport === undefined) continue
    try {
      await retryImport(services, claimedImport, signal)
    } catch (error) {
      if (!(error instanceof Refusal)) throw error // tried again after the lease
      await setRetry(services.db, claimedImport.id, null) // the account is closed
      await deleteSpool(importFolder(services, claimedImport))
      continue
    }
    await keepForRetry(services, claimedImport, claimedImport.retries)
  }
}

/** Claims an import whose folder is on this machine. A folder that is missing for longer than items are kept is on no machine. */
async function claimRetryHere(
  services: Services,
  { id, retryAt, ...due }: Awaited<ReturnType<typeof findDueRetries>>[number],
): Promise<ArchiveImport | undefined> {
  const now = services.now()
  const folder = importFolder(services, due)
  await finishKeeping(folder)
  if (await isFolder(folder)) return claimRetry(services.db, id, { now, leaseHours: IMPORT_LIMITS.retryHours[0] })
  if (now.getTime() - retryAt.getTime() > IMPORT_LIMITS.itemDays * DAY_MS) await setRetry(services.db, id, null)
  return undefined
}

async function retryImport(services: Services, claimed: ArchiveImport, signal: AbortSignal): Promise<void> {
  const context = await openImportContext(services, claimed, signal)
  const items = await findRetriedItems(services.db, claimed.id)
  const end = performance.now() + IMPORT_LIMITS.retryMs
  for (const importer of IMPORTERS) {
    const { list } = importer
    for await (const batch of spooledBatches(importFolder(services, claimed), list)) {
      signal.throwIfAborted()
      if (performance.now() >= end) return
      const due = batch.items.filter(({ position }) => isRetried(items, list, position))
      if (due.length > 0) await retryBatch(context, claimed.id, importer, due)
    }
  }
}

async function retryBatch(
  context: ImportContext,
  importId: number,
  importer: BatchImporter,
  items: readonly SpooledItem[],
): Promise<void> {
  const batch = await importer.prepare(context, readItems(context, importer.list, items))
  await inRequestTransaction(context.services, async (transaction) => {
    const storedOutcomes = await batch.store(transaction)
    await replaceOutcomes(transaction, importId, [...batch.outcomes, ...storedOutcomes])
  })
}
