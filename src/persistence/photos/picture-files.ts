import { randomBytes } from 'node:crypto'
import { createWriteStream } from 'node:fs'
import { access, constants, open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { makeFolder } from '../../config/make-folder.js'
import { StartError } from '../../errors/start-error.js'
import { messageOf } from '../../errors/thrown.js'

/** Published files, served to everyone. */
export function imagesFolder(uploadsDir: string): string {
  return join(uploadsDir, 'images')
}

/** Uploads and drafts, before they are published. */
export function spoolFolder(uploadsDir: string): string {
  return join(uploadsDir, 'spool')
}

/** Fails at the start of the process, instead of at the first upload, if the folder cannot be written. */
export async function checkUploadsFolder(uploadsDir: string): Promise<void> {
  try {
    for (const [folder, mode] of [
      [imagesFolder(uploadsDir), 0o755],
      [spoolFolder(uploadsDir), 0o700],
    ] as const) {
      await makeFolder(folder, mode)
      await access(folder, constants.W_OK | constants.X_OK)
    }
  } catch (cause) {
    throw new StartError(
      `Pictures cannot be stored in ${uploadsDir} (${messageOf(cause)}): make it a folder that this user may write to, or set another UPLOADS_DIR.`,
      { cause },
    )
  }
}

/** Streams an upload into the spool folder. Resolves with its file name there. */
export async function storeUpload(uploadsDir: string, bytes: Readable, signal: AbortSignal): Promise<string> {
  await makeFolder(spoolFolder(uploadsDir), 0o700)
  const file = randomBytes(16).toString('hex')
  try {
    const target = createWriteStream(join(spoolFolder(uploadsDir), file), { flags: 'wx', mode: 0o600 })
    await pipeline(bytes, target, { signal })
    return file
  } catch (error) {
    await deleteUploads(uploadsDir, [file])
    throw error
  }
}

/** Reads the first bytes of an upload, at most `length`. */
export async function readUploadStart(uploadsDir: string, file: string, length: number): Promise<Buffer> {
  const handle = await open(join(spoolFolder(uploadsDir), file))
  try {
    const { buffer, bytesRead } = await handle.read(Buffer.alloc(length), 0, length, 0)
    return buffer.subarray(0, bytesRead)
  } finally {
    await handle.close()
  }
}

export async function readUpload(uploadsDir: string, file: string): Promise<Buffer> {
  try {
    return await readFile(join(spoolFolder(uploadsDir), file))
  } catch (cause) {
    const text = `There is no upload ${file} in ${uploadsDir}: web and worker processes need the same UPLOADS_DIR.`
    throw new Error(text, { cause })
  }
}

/** Writes a picture to the spool folder and flushes it to the disk. Resolves with its file name there. */
export async function writeDraft(uploadsDir: string, bytes: Buffer): Promise<string> {
  const file = randomBytes(16).toString('hex')
  const handle = await open(join(spoolFolder(uploadsDir), file), 'wx', 0o644)
  try {
    await handle.writeFile(bytes)
    await handle.sync()
    return file
  } catch (error) {
    await deleteUploads(uploadsDir, [file])
    throw error
  } finally {
    await handle.close()
  }
}

/** Moves drafts to their public names and flushes the folder: once it resolves, they survive a loss of power. */
export async function publishDrafts(uploadsDir: string, drafts: ReadonlyMap<string, string>): Promise<void> {
  const folder = imagesFolder(uploadsDir)
  await makeFolder(folder, 0o755)
  for (const [name, draft] of drafts) await rename(join(spoolFolder(uploadsDir), draft), join(folder, name))
  const handle = await open(folder)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Deletes uploads and drafts. Missing files are not an error. */
export async function deleteUploads(uploadsDir: string, files: Iterable<string>): Promise<void> {
  for (const file of files) await rm(join(spoolFolder(uploadsDir), file), { force: true })
}

/** Deletes published files. Missing files are not an error. */
export async function deletePictures(uploadsDir: string, names: readonly string[]): Promise<void> {
  for (const name of names) await rm(join(imagesFolder(uploadsDir), name), { force: true })
}

/** Deletes the files in the spool folder that are older than a time. Resolves with their number. */
export async function deleteOldUploads(uploadsDir: string, before: Date): Promise<number> {
  const folder = spoolFolder(uploadsDir)
  await makeFolder(folder, 0o700)
  let deletedFiles = 0
  for (const file of await readdir(folder)) {
    const stats = await stat(join(folder, file)).catch(() => undefined)
    if (stats === undefined || stats.mtime >= before) continue
    await deleteUploads(uploadsDir, [file])
    deletedFiles += 1
  }
  return deletedFiles
}
