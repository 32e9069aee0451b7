import { statfs } from 'node:fs/promises'
import type { Services } from '../../services/services.js'

export interface FolderSpace {
  readonly folder: string
  /** Null: the folder cannot be read. */
  readonly freeBytes: number | null
  readonly totalBytes: number | null
}

/** A share of the disk from which an operator should act. */
const LOW_SHARE = 0.1

export function isNearlyFull({ freeBytes, totalBytes }: FolderSpace): boolean {
  return freeBytes !== null && totalBytes !== null && freeBytes < totalBytes * LOW_SHARE
}

/** Free space of the folders of the pod. */
export async function readFolderSpaces({ config }: Pick<Services, 'config'>): Promise<readonly FolderSpace[]> {
  return Promise.all([...new Set([config.uploadsDir, config.dataDir])].map(readFolderSpace))
}

/** Whether writing `bytes` leaves at least `keptFree` bytes on the disk. An unreadable folder counts as empty. */
export function hasSpaceFor({ freeBytes }: Pick<FolderSpace, 'freeBytes'>, bytes: number, keptFree: number): boolean {
  return freeBytes === null || freeBytes - bytes >= keptFree
}

export async function readFolderSpace(folder: string): Promise<FolderSpace> {
  try {
    const { bavail, blocks, bsize } = await statfs(folder)
    return { folder, freeBytes: bavail * bsize, totalBytes: blocks * bsize }
  } catch {
    return { folder, freeBytes: null, totalBytes: null }
  }
}
