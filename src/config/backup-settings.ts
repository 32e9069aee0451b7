import type { S3Settings } from '../persistence/s3/s3-client.js'
import { checkAddressScheme } from './addresses.js'
import type { ValuesOf } from './schemas.js'
import { isAllInS3 } from './storage-settings.js'
import { type BACKUP_VARIABLES, KEEP_PATTERN } from './variables/backup.js'

/** Address and keys of the S3 store for backups. */
export type BackupStore = Omit<S3Settings, 'bucket' | 'prefix'>

/** How many days, weeks and months keep their last backup. */
export interface BackupKeep {
  readonly daily: number
  readonly weekly: number
  readonly monthly: number
}

type BackupVariables = ValuesOf<typeof BACKUP_VARIABLES>

export function readBackupS3(variables: BackupVariables, faults: string[]): BackupStore | undefined {
  const { BACKUP_S3_ENDPOINT: endpoint, BACKUP_S3_REGION: region } = variables
  const { BACKUP_S3_ACCESS_KEY_ID: accessKeyId, BACKUP_S3_SECRET_ACCESS_KEY: secretAccessKey } = variables
  checkAddressScheme('BACKUP_S3_ENDPOINT', endpoint, ['http:', 'https:'], faults)
  if (accessKeyId === undefined || secretAccessKey === undefined) return undefined
  return { endpoint, region, accessKeyId, secretAccessKey, isPathStyle: endpoint !== undefined }
}

export function checkBackupPictures(
  variables: BackupVariables & Parameters<typeof isAllInS3>[0],
  faults: string[],
): void {
  if (variables.BACKUP_PICTURES !== 'reference' || isAllInS3(variables)) return
  faults.push(
    'BACKUP_PICTURES=reference needs STORAGE=s3 without UPLOADS_FALLBACK: pictures in a folder must be in the backup.',
  )
}

export function readBackupKeep(text: string): BackupKeep {
  const [, daily = 0, weekly = 0, monthly = 0] = KEEP_PATTERN.exec(text) ?? []
  return { daily: Number(daily), weekly: Number(weekly), monthly: Number(monthly) }
}
