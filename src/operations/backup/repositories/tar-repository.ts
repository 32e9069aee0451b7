import { once } from 'node:events'
import type { Writable } from 'node:stream'
import { BackupError } from '../backup-error.js'
import type { Repository } from './repository.js'

const BLOCK = 512

export interface TarRepository extends Repository {
  /** Writes the end of the archive. */
  end(): Promise<void>
}

/**
 * A repository that only writes: a tar archive (ustar) for another program. A file is in memory until its length is known. Unpacked,
 * the archive is a repository in a folder.
 */
export function openTarRepository(output: Writable): TarRepository {
  let last: Promise<void> = Promise.resolve()

  let hasFailed = false
  output.on('error', () => {
    hasFailed = true
  })

  async function send(bytes: Uint8Array): Promise<void> {
    try {
      if (!hasFailed && !output.write(bytes)) await once(output, 'drain')
    } catch {
      hasFailed = true
    }
    if (hasFailed || output.destroyed) throw new BackupError('The output was closed before the backup was complete.')
  }

  async function append(path: string, content: Buffer): Promise<void> {
    await send(headerOf(path, content.length))
    await send(content)
    await send(Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK))
  }

  return {
    place: 'the output',
    async write(path, bytes) {
      const chunks: Uint8Array[] = []
      for await (const chunk of bytes) chunks.push(chunk)
      // Parts are made side by side, and their blocks must not mix.
      last = last.then(() => append(path, Buffer.concat(chunks)))
      await last
    },
    // biome-ignore lint/correctness/useYield: nothing can be read
    async *read(path) {
      throw new BackupError(`${path} cannot be read: the output holds no earlier backups.`)
    },
    // What was written cannot be read again.
    size: async () => undefined,
    list: async () => [],
    remove: async () => undefined,
    async end() {
      await last
      await send(Buffer.alloc(2 * BLOCK))
    },
  }
}

/** The header of a file that its owner alone may read. The time is left out: the manifest has it. */
function headerOf(path: string, size: number): Buffer {
  if (path.length > 100) throw new BackupError(`The name ${path} is too long for a tar archive.`)
  const header = Buffer.alloc(BLOCK)
  const octal = (value: number, length: number) => `${value.toString(8).padStart(length - 1, '0')}\0`
  header.write(path, 0, 'ascii')
  header.write(octal(0o600, 8), 100)
  header.write(octal(0, 8), 108)
  header.write(octal(0, 8), 116)
  // Eleven octal digits: 8 GiB, far above the size of a part.
  header.write(octal(size, 12), 124)
  header.write(octal(0, 12), 136)
  header.write('        0', 148)
  header.write('ustar\x0000', 257)
  const sum = header.reduce((total, byte) => total + byte, 0)
  header.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148)
  return header
}
