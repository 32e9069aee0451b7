import { randomBytes } from 'node:crypto'
import { rm, statfs, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Config } from '../../src/config/config.js'
import { makeFolder } from '../../src/config/make-folder.js'
import {
  type CheckResult,
  checkFailure,
  checkPassed,
  checkWarning,
  withCheckFailure,
} from '../../src/domain/operations/check-result.js'
import { messageOf } from '../../src/errors/thrown.js'
import { openPictureStorage } from '../../src/persistence/photos/open-pictures.js'
import { readSecretKey, secretKeyFile } from '../../src/services/secrets.js'

const SCARCE_BYTES = 2 ** 30
const FULL_BYTES = 100 * 2 ** 20
const RECOMMENDED_NODE = 22

/** Checks settings, data folder, disk and secret key; needs no database. */
export async function checkMachine(config: Config): Promise<readonly CheckResult[]> {
  return [
    checkNode(),
    checkPodUrl(config),
    ...(await withCheckFailure('data folder', async () => [
      await checkFolder('data folder', config.dataDir, 'DATA_DIR'),
    ])),
    ...(await withCheckFailure('uploads', async () => [await checkPictures(config)])),
    ...(await withCheckFailure('disk', async () => [await checkDisk(config.dataDir)])),
    ...(await withCheckFailure('secret key', async () => [await checkSecretKey(config)])),
  ]
}

function checkNode(): CheckResult {
  const major = Number(process.versions.node.split('.')[0])
  if (major >= RECOMMENDED_NODE) return checkPassed('node', `Node ${process.versions.node}.`)
  return checkWarning(
    'node',
    `Node ${process.versions.node} works, but no longer gets security fixes: use Node 22 or 24 for a public pod.`,
  )
}

function checkPodUrl({ url }: Config): CheckResult {
  if (new URL(url).protocol === 'https:') return checkPassed('address', `Other pods know this pod as ${url}.`)
  return checkWarning(
    'address',
    `Other pods cannot reach ${url}: set POD_URL to a public https address before users sign up.`,
  )
}

async function checkFolder(check: string, path: string, setting: string): Promise<CheckResult> {
  const probe = join(path, `doctor-${randomBytes(4).toString('hex')}`)
  try {
    await makeFolder(path, 0o700)
    await writeFile(probe, 'writable')
    await rm(probe)
    return checkPassed(check, `${path} can be written.`)
  } catch (error) {
    return checkFailure(
      check,
      `${path} cannot be written (${messageOf(error)}): change its owner, or set another ${setting}.`,
    )
  }
}

async function checkPictures(config: Config): Promise<CheckResult> {
  if (config.storage === 'folder') return checkFolder('uploads', config.uploadsDir, 'UPLOADS_DIR')
  await openPictureStorage(config).check()
  return checkPassed('uploads', `The S3 store answers for the bucket ${config.s3?.bucket}.`)
}

async function checkDisk(dataDir: string): Promise<CheckResult> {
  const { bavail, bsize } = await statfs(dataDir)
  const free = bavail * bsize
  const amount = `${(free / 2 ** 30).toFixed(1)} GiB are free where ${dataDir} is`
  if (free < FULL_BYTES)
    return checkFailure('disk', `Only ${amount}: free some space: PostgreSQL stops when the disk is full.`)
  return free < SCARCE_BYTES
    ? checkWarning('disk', `Only ${amount}: free some space soon.`)
    : checkPassed('disk', `${amount}.`)
}

async function checkSecretKey(config: Config): Promise<CheckResult> {
  await readSecretKey(config)
  return config.secretKey === undefined
    ? checkPassed(
        'secret key',
        `The secret key is stored in ${secretKeyFile(config.dataDir)}: back it up together with the database.`,
      )
    : checkPassed('secret key', 'The secret key comes from SECRET_KEY; all processes need the same one.')
}
