import { createHash, randomBytes } from 'node:crypto'
import { createReadStream, createWriteStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pipeline } from 'node:stream/promises'
import { StartError } from '../../errors/start-error.js'
import { messageOf } from '../../errors/thrown.js'
import type { S3Client, S3File } from '../s3/s3-client.js'
import { deleteDrafts, draftPath } from './local-drafts.js'
import type { ByteRange, PictureStorage } from './picture-storage.js'

const MEDIA_TYPES: Readonly<Record<string, string>> = {
  jpg: 'image/jpeg',
  jpeg: 'image/jpeg',
  png: 'image/png',
  gif: 'image/gif',
  webp: 'image/webp',
}

/** The most that S3 takes in one request. Exports are not sent in several. */
const MAX_OBJECT_BYTES = 5 * 2 ** 30

const LINK_SECONDS = 15 * 60

const imageKey = (name: string) => `images/${name}`
const exportKey = (name: string) => `exports/${name}`
const spoolKey = (file: string) => `spool/${file}`

/** Pictures in a bucket: `images/` is published, `spool/` has uploads. No process needs a common folder. */
export function openS3Pictures(s3: S3Client): PictureStorage {
  async function readObject(key: string, range?: string): Promise<Buffer | undefined> {
    const body = await s3.get(key, range)
    if (body === undefined) return undefined
    return body.stream === null ? Buffer.alloc(0) : buffer(body.stream)
  }

  async function openObject(key: string, range?: ByteRange): Promise<Readable | undefined> {
    const body = await s3.get(key, range && `bytes=${range.start}-${range.end}`)
    if (body === undefined) return undefined
    return body.stream === null ? Readable.from([]) : Readable.fromWeb(body.stream as never)
  }

  async function write(name: string, bytes: Buffer): Promise<void> {
    await s3.put(imageKey(name), bytes, {
      'content-type': MEDIA_TYPES[name.split('.').at(-1) ?? ''] ?? 'application/octet-stream',
      'cache-control': 'public, max-age=31536000, immutable',
    })
  }

  return {
    kind: 's3',
    maxExportBytes: MAX_OBJECT_BYTES,

    async check() {
      try {
        await s3.list('images/')
      } catch (cause) {
        throw new StartError(
          `Pictures cannot be stored (${messageOf(cause)}): check S3_ENDPOINT, S3_BUCKET, S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY.`,
          { cause },
        )
      }
    },

    storeUpload: (bytes, signal) => storeUpload(s3, bytes, signal),
    async readUploadStart(file, length) {
      return (await readObject(spoolKey(file), `bytes=0-${length - 1}`)) ?? Buffer.alloc(0)
    },
    async readUpload(file) {
      const bytes = await readObject(spoolKey(file))
      if (bytes === undefined) throw new Error(`There is no upload ${file} in the S3 store.`)
      return bytes
    },
    async deleteUploads(files) {
      for (const file of files) await s3.remove(spoolKey(file))
    },
    async deleteOldUploads(before) {
      let deletedFiles = 0
      for (let after = 'spool/'; ; ) {
        const objects = await s3.list('spool/', after)
        for (const { key, modifiedAt } of objects) {
          if (modifiedAt >= before) continue
          await s3.remove(key)
          deletedFiles += 1
        }
        const last = objects.at(-1)
        if (last === undefined) return deletedFiles
        after = last.key
      }
    },

    // Pictures get their final names at once: a copy inside the transaction would be slower. The names are random and in the job:
    // a retry writes them again, and a withdrawn upload deletes them.
    async prepare(pictures) {
      await Promise.all([...pictures].map(([name, bytes]) => write(name, bytes)))
      return { publish: async () => undefined, discard: async () => undefined }
    },
    write,
    read: (name) => readObject(imageKey(name)),
    async find(name) {
      const head = await s3.head(imageKey(name))
      return head && { bytes: head.bytes, etag: head.etag, sha256: head.sha256 }
    },
    open: (name, range) => openObject(imageKey(name), range),
    async delete(names) {
      await Promise.all(names.map((name) => s3.remove(imageKey(name))))
    },
    async list(after) {
      const objects = await s3.list('images/', imageKey(after))
      return objects.map(({ key, bytes, modifiedAt }) => ({ name: key.slice('images/'.length), bytes, modifiedAt }))
    },
    async exportDraft(name) {
      return draftPath('export', name)
    },
    async storeExport(name, { path, bytes, sha256 }) {
      await s3.put(exportKey(name), { bytes, sha256, open: () => createReadStream(path) })
      await rm(path)
    },
    openExport: (name, range) => openObject(exportKey(name), range),
    async deleteExports(names) {
      await deleteDrafts(names)
      for (const name of names) await s3.remove(exportKey(name))
    },
    // The store would answer a link to a missing picture itself, and the pod may know another place.
    async linkTo(name, method) {
      const object = await s3.head(imageKey(name))
      return object && s3.presign(imageKey(name), LINK_SECONDS, method)
    },
  }
}

/**
 * Stores an upload by way of a temporary file: length and hash have to be known before the request begins, and many uploads do not fit into
 * memory.
 */
async function storeUpload(s3: S3Client, bytes: Readable, signal: AbortSignal): Promise<string> {
  const file = randomBytes(16).toString('hex')
  const path = draftPath('upload', file)
  try {
    const content = await writeHashed(path, bytes, signal)
    await s3.put(spoolKey(file), { ...content, open: () => createReadStream(path) })
    return file
  } finally {
    await rm(path, { force: true })
  }
}

async function writeHashed(
  path: string,
  content: Readable,
  signal: AbortSignal,
): Promise<Pick<S3File, 'bytes' | 'sha256'>> {
  const hash = createHash('sha256')
  let bytes = 0
  await pipeline(
    content,
    async function* hashed(chunks: AsyncIterable<Buffer>) {
      for await (const chunk of chunks) {
        hash.update(chunk)
        bytes += chunk.length
        yield chunk
      }
    },
    createWriteStream(path, { flags: 'wx', mode: 0o600 }),
    { signal },
  )
  return { bytes, sha256: hash.digest('hex') }
}
