import type { S3Settings } from '../persistence/s3/s3-client.js'
import { isUrl } from '../protocol/is-url.js'
import { checkAddressScheme } from './addresses.js'
import type { ValuesOf } from './schemas.js'
import type { PICTURE_VARIABLES } from './variables/pictures.js'

type StorageVariables = ValuesOf<typeof PICTURE_VARIABLES>

/** The S3 store; undefined: no setting uses one. */
export function readS3(variables: StorageVariables, faults: string[]): S3Settings | undefined {
  const { S3_ENDPOINT: endpoint, S3_BUCKET: bucket, S3_ACCESS_KEY_ID: id, S3_SECRET_ACCESS_KEY: secret } = variables
  checkAddressScheme('S3_ENDPOINT', endpoint, ['http:', 'https:'], faults)
  const isUsed = variables.STORAGE === 's3' || variables.UPLOADS_FALLBACK === 's3'
  if (bucket === undefined || id === undefined || secret === undefined) {
    if (isUsed) faults.push('An S3 store needs S3_BUCKET, S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY.')
    return undefined
  }
  return {
    endpoint,
    region: variables.S3_REGION,
    bucket,
    prefix: /(^|\/)$/.test(variables.S3_PREFIX) ? variables.S3_PREFIX : `${variables.S3_PREFIX}/`,
    accessKeyId: id,
    secretAccessKey: secret,
    isPathStyle: variables.S3_PATH_STYLE === undefined ? endpoint !== undefined : variables.S3_PATH_STYLE === 'true',
  }
}

/** An address without a path has the pictures under the path of this pod. */
export function readUploadsBaseUrl(text: string | undefined, faults: string[]): string | undefined {
  if (text === undefined) return undefined
  const url = isUrl(text) ? new URL(text) : undefined
  if (
    url === undefined ||
    !['http:', 'https:'].includes(url.protocol) ||
    `${url.search}${url.hash}${url.username}` !== ''
  ) {
    faults.push('UPLOADS_BASE_URL must be an address like https://cdn.example or https://cdn.example/pod/images.')
    return undefined
  }
  if (url.pathname === '/') return `${url.origin}/uploads/images/`
  return url.href.replace(/\/*$/, '/')
}

/** While pictures move to S3, some are only in the folder. */
export function isAllInS3({ STORAGE, UPLOADS_FALLBACK }: StorageVariables): boolean {
  return STORAGE === 's3' && UPLOADS_FALLBACK !== 'folder'
}
