import { statfs } from 'node:fs/promises'
import type { Pod } from '../../pod/pod.js'

export interface StorageFacts {
  readonly folder: string
  /** Null: the folder cannot be read. */
  readonly freeBytes: number | null
  readonly totalBytes: number | null
}

/** A share of the disk from which an operator should act. */
const LOW_SHARE = 0.1

export function isNearlyFull({ freeBytes, totalBytes }: StorageFacts): boolean {
  return freeBytes !== null && totalBytes !== null && freeBytes < totalBytes * LOW_SHARE
}

/** Free space of the folders of the pod. */
export async function storageFacts({ config }: Pick<Pod, 'config'>): Promise<readonly StorageFacts[]> {
  return Promise.all([...new Set([config.uploadsDir, config.dataDir])].map(factsOfFolder))
}

/** Whether so many bytes more leave so many free. A folder that cannot be read is taken as empty. */
export function hasSpaceFor({ freeBytes }: Pick<StorageFacts, 'freeBytes'>, bytes: number, keptFree: number): boolean {
  return freeBytes === null || freeBytes - bytes >= keptFree
}

export async function factsOfFolder(folder: string): Promise<StorageFacts> {
  try {
    const { bavail, blocks, bsize } = await statfs(folder)
    return { folder, freeBytes: bavail * bsize, totalBytes: blocks * bsize }
  } catch {
    return { folder, freeBytes: null, totalBytes: null }
  }
}
