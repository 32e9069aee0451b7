import { Readable } from 'node:stream'
import { messageOf } from '../../../errors/thrown.js'
import { openS3Client, type S3Settings } from '../../../persistence/s3/s3-client.js'
import { StorageUnavailable } from '../../../persistence/s3/storage-unavailable.js'
import { BackupError, RepositoryUnavailableError } from '../backup-error.js'
import type { Repository } from './repository.js'

/** A repository in a bucket. A part is in memory while it is sent, because its length has to be known before. */
export function openS3Repository(settings: S3Settings): Repository {
  const place = `s3://${settings.bucket}/${settings.prefix}`
  const s3 = openS3Client(settings)

  async function explainFailure<Result>(work: () => Promise<Result>): Promise<Result> {
    try {
      return await work()
    } catch (error) {
      if (!(error instanceof StorageUnavailable)) throw error
      const message = `${place} cannot be used. ${messageOf(error)}`
      throw error.isRefused ? new BackupError(message) : new RepositoryUnavailableError(message, { cause: error })
    }
  }

  return {
    place,
    write: (path, bytes) =>
      explainFailure(async () => {
        const chunks: Uint8Array[] = []
        for await (const chunk of bytes) chunks.push(chunk)
        await s3.put(path, Buffer.concat(chunks))
      }),
    async *read(path) {
      const body = await explainFailure(() => s3.get(path))
      if (body === undefined) throw new BackupError(`${path} is missing in ${place}.`)
      if (body.stream === null) return
      try {
        for await (const chunk of Readable.fromWeb(body.stream as never)) yield chunk as Buffer
      } catch (cause) {
        const message = `${place} cannot be used. ${path} was not sent to its end (${messageOf(cause)}).`
        throw new RepositoryUnavailableError(message, { cause })
      }
    },
    size: (path) => explainFailure(async () => (await s3.head(path))?.bytes),
    list: (folder) => explainFailure(async () => (await s3.listNames(`${folder}/`)).toSorted()),
    remove: (path) =>
      explainFailure(async () => {
        await s3.remove(path)
        for (let after: string | undefined; ; ) {
          const objects = await s3.list(`${path}/`, after)
          for (const { key } of objects) await s3.remove(key)
          after = objects.at(-1)?.key
          if (after === undefined) return
        }
      }),
  }
}
