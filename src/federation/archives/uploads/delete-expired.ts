import { readdir, stat } from 'node:fs/promises'
import { hasCode } from '../../../errors/thrown.js'
import { expireUploads, findExpiredUploads } from '../../../persistence/archives/import-uploads.js'
import { findEndedImports, findKnownArchives } from '../../../persistence/archives/imports.js'
import { deleteUnusedSpace } from '../../../persistence/archives/upload-space.js'
import { DAY_MS } from '../../../protocol/durations.js'
import type { Services } from '../../../services/services.js'
import { importFolder } from '../imports/begin-import.js'
import { IMPORT_LIMITS } from '../limits.js'
import { deleteSpool, folderOfImport } from '../reading/spool-archive.js'
import { deleteUploadedFiles } from './receive-upload.js'

const EXPIRED_BATCH_SIZE = 100

/** Deletes the files of uploads whose time is over. */
export async function deleteExpiredUploads(services: Pick<Services, 'config' | 'db' | 'now'>): Promise<void> {
  const now = services.now()
  const daysAgo = (days: number) => new Date(now.getTime() - days * DAY_MS)
  const expiredUploads = await findExpiredUploads(services.db, {
    doneBefore: daysAgo(IMPORT_LIMITS.doneUploadDays),
    uploadedBefore: daysAgo(IMPORT_LIMITS.uploadDays),
    limit: EXPIRED_BATCH_SIZE,
  })
  await deleteUnusedSpace(services.db)
  if (expiredUploads.length === 0) return
  await expireUploads(
    services.db,
    expiredUploads.map(({ id }) => id),
    now,
  )
  for (const { uid, isDone } of expiredUploads) {
    await deleteUploadedFiles(services, uid)
    if (!isDone) await deleteSpool(importFolder(services, { uid })) // an import that is done keeps the items that are tried again
  }
}

/** The uid of an import or an upload. The folder of the uploaded files has another name. */
const UID = /^[0-9a-f]{32}$/

/**
 * Deletes the lists of archives that a process has left when it died: those of ended imports without items that are tried again, and
 * those for which no import was stored.
 */
export async function deleteLeftLists(services: Pick<Services, 'config' | 'db' | 'now'>): Promise<void> {
  const { db } = services
  const uids = await listFolders(importFolder(services, { uid: '' }))
  if (uids.length === 0) return
  const knownUids = new Set(await findKnownArchives(db, uids))
  const leftUids = [...(await findEndedImports(db, uids))]
  const before = services.now().getTime() - IMPORT_LIMITS.uploadDays * DAY_MS
  for (const uid of uids) {
    if (!knownUids.has(uid) && (await isOlder(importFolder(services, { uid }), before))) leftUids.push(uid)
  }
  for (const uid of leftUids) await deleteSpool(importFolder(services, { uid }))
}

async function listFolders(parent: string): Promise<readonly string[]> {
  try {
    return [...new Set((await readdir(parent)).map(folderOfImport))].filter((name) => UID.test(name))
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return []
    throw error
  }
}

/** A folder that is missing is as good as an old one: others of the same import may be left. */
async function isOlder(folder: string, before: number): Promise<boolean> {
  try {
    return (await stat(folder)).mtimeMs < before
  } catch (error) {
    if (hasCode(error, 'ENOENT')) return true
    throw error
  }
}
