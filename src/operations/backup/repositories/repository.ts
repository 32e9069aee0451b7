import type { S3Settings } from '../../../persistence/s3/s3-client.js'
import { BackupError } from '../backup-error.js'
import { openFolderRepository } from './folder-repository.js'
import { openS3Repository } from './s3-repository.js'

/** The place that holds backups. Paths have slashes. Everything fails with a RepositoryUnavailableError if the place does not answer. */
export interface Repository {
  /** The place as messages name it. */
  readonly place: string
  /** Writes a file completely or not at all. */
  write(path: string, bytes: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<void>
  /** Fails with a BackupError if the file is missing. */
  read(path: string): AsyncIterable<Buffer>
  /** Undefined: there is no such file. */
  size(path: string): Promise<number | undefined>
  /** The names in a folder, in order. */
  list(folder: string): Promise<readonly string[]>
  /** Removes a file or a folder with its content. */
  remove(path: string): Promise<void>
}

/** Keys and address of the S3 store for backups, which is not the one of pictures. */
export type BackupS3Settings = Omit<S3Settings, 'bucket' | 'prefix'>

/** Opens the target of a command or setting: a folder, or s3://bucket/prefix. */
export function openRepository(target: string, s3: BackupS3Settings | undefined): Repository {
  const [, bucket, path = ''] = /^s3:\/\/([a-z0-9][a-z0-9.-]+)(?:\/([A-Za-z0-9_./-]*))?$/.exec(target) ?? []
  if (bucket !== undefined) {
    if (s3 === undefined) {
      throw new BackupError('A backup in S3 needs BACKUP_S3_ACCESS_KEY_ID and BACKUP_S3_SECRET_ACCESS_KEY.')
    }
    return openS3Repository({ ...s3, bucket, prefix: path === '' || path.endsWith('/') ? path : `${path}/` })
  }
  if (/^[a-z0-9+]+:\/\//i.test(target)) {
    throw new BackupError(
      `Backups cannot be stored in ${target.replace(/:\/\/.*/s, '://…')}: give the path of a folder, or s3://bucket/prefix.`,
    )
  }
  return openFolderRepository(target)
}
