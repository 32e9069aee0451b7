import { Refusal } from '../../../domain/refusals.js'
import {
  claimRetry,
  findRetriedItems,
  type RetriedItems,
  replaceOutcomes,
  setRetry,
} from '../../../persistence/archives/import-retries.js'
import type { ArchiveImport } from '../../../persistence/archives/imports.js'
import { saveSplitBytes } from '../../../persistence/archives/upload-space.js'
import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import type { Services } from '../../../services/services.js'
import { IMPORT_LIMITS } from '../limits.js'
import { readItems } from '../reading/items-of-version.js'
import { deleteSpool, keepChosenItems, type SpooledItem, spooledBatches } from '../reading/spool-archive.js'
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
  const hours = IMPORT_LIMITS.retryHours[retries]
  const items = await findRetriedItems(services.db, ended.id)
  if (items.size === 0 || hours === undefined) {
    await setRetry(services.db, ended.id, null)
    return deleteSpool(folder)
  }
  const hasRelayables = items.has('relayables')
  const bytes = await keepChosenItems(
    folder,
    (list, position) => isRetried(items, list, position) || (list === 'others_posts' && hasRelayables),
  )
  await saveSplitBytes(services.db, ended.uid, bytes)
  await setRetry(services.db, ended.id, new Date(services.now().getTime() + hours * HOUR_MS))
}

function isRetried(items: RetriedItems, list: string, position: number): boolean {
  const importer = IMPORTERS.find((known) => known.list === list)
  return importer !== undefined && items.get(importer.section)?.has(position) === true
}

/** Tries the due items of imports again, one import after the other. */
export async function retryItems(services: Services, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const claimedImport = await claimRetry(services.db, {
      now: services.now(),
      leaseHours: IMPORT_LIMITS.retryHours[0],
    })
    if (claimedImport === undefined) return
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
