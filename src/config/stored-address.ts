import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { hasCode } from '../errors/thrown.js'

/** The address under which a web process of this data folder answers, or last did. */
export interface StoredAddress {
  readonly url: string
  readonly pid: number
}

const FILE = 'address.json'

/** Stores the address for commands, whose settings may differ. A pod without a writable data folder stores none. */
export async function storeAddress(dataDir: string, url: string): Promise<void> {
  const path = join(dataDir, FILE)
  const draft = `${path}.${process.pid}`
  try {
    await writeFile(draft, JSON.stringify({ url, pid: process.pid }), { mode: 0o600 })
    await rename(draft, path)
  } catch (error) {
    if (!['ENOENT', 'EACCES', 'EROFS', 'EPERM'].some((code) => hasCode(error, code))) throw error
  }
}

export async function readStoredAddress(dataDir: string): Promise<StoredAddress | undefined> {
  try {
    const storedAddress = JSON.parse(await readFile(join(dataDir, FILE), 'utf8'))
    return typeof storedAddress?.url === 'string' && typeof storedAddress.pid === 'number' ? storedAddress : undefined
  } catch {
    return undefined
  }
}

export function isRunning({ pid }: StoredAddress): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return hasCode(error, 'EPERM')
  }
}
