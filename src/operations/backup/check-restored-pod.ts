import { createPrivateKey, createPublicKey } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { decryptStoredPrivateKey } from '../../domain/accounts/private-keys.js'
import { UPLOADS_PATH } from '../../domain/photos/photos.js'
import { messageOf } from '../../errors/thrown.js'
import { Person } from '../../persistence/models/person.js'
import { Photo } from '../../persistence/models/photo.js'
import { UserSecrets } from '../../persistence/models/user.js'
import type { Services } from '../../services/services.js'
import { OIDC_PATHS } from '../../web/oidc/paths.js'
import { buildApp } from '../../web/server/app.js'

const KEYS_CHECKED = 10

/** How long a page may be answered with 503, which says that the machine is busy and nothing about the backup. */
const BUSY: Attempts = { attempts: 30, pauseMs: 2_000 }

interface Attempts {
  readonly attempts: number
  readonly pauseMs: number
}

/**
 * Serves a restored pod inside this process, without a port, and returns the faults of its main pages and keys in sentences. The picture
 * is of one of these photos; not every photo has a file in the backup.
 */
export async function checkRestoredPod(services: Services, photoIds: readonly number[]): Promise<readonly string[]> {
  const app = await buildApp(services)
  try {
    const faults: string[] = []
    for (const path of await listPathsToCheck(services, photoIds)) {
      const statusCode = await requestWhileBusy(async () => {
        const answer = await app.inject({ url: path, headers: { host: services.config.host } })
        return answer.statusCode
      })
      if (statusCode !== 200) faults.push(`${path} is answered with ${statusCode}.`)
    }
    return [...faults, ...(await findKeyFaults(services))]
  } finally {
    await app.close()
  }
}

/** The first status that is not 503, or the last one. */
export async function requestWhileBusy(
  ask: () => Promise<number>,
  { attempts, pauseMs }: Attempts = BUSY,
): Promise<number> {
  for (let attempt = 1; ; attempt += 1) {
    const status = await ask()
    if (status !== 503 || attempt === attempts) return status
    await pause(pauseMs)
  }
}

/** One address of each kind: WebFinger and page of a person, a post, a picture, and the sign-in page. */
async function listPathsToCheck({ db }: Services, photoIds: readonly number[]): Promise<readonly string[]> {
  const person = await Person.query(db)
    .whereIn('id', db('users').whereNull('closedAt').select('personId'))
    .orderBy('id')
    .first()
  const post = await db('posts')
    .where({ public: true })
    .whereIn('authorId', db('users').select('personId'))
    .orderBy('id')
    .first('guid')
  const photo = await Photo.query(db)
    .whereIn('id', [...photoIds])
    .where({ pending: false })
    .whereNull('remotePath')
    .whereNull('publicBeforeHiding') // hidden photos are not served
    .orderBy('id')
    .first()
  return [
    '/health/ready',
    OIDC_PATHS.signIn,
    ...(person === undefined
      ? []
      : [`/.well-known/webfinger?resource=acct:${encodeURIComponent(person.address)}`, `/people/${person.guid}`]),
    ...(post === undefined ? [] : [`/posts/${post.guid}`]),
    ...(photo === undefined ? [] : [`${UPLOADS_PATH}${photo.name}`]),
  ]
}

/** Opens some sealed private keys, and compares them with the public keys of their people. */
async function findKeyFaults({ db, secrets }: Services): Promise<readonly string[]> {
  const sealedKeys = await UserSecrets.query(db).orderBy('userId').limit(KEYS_CHECKED)
  const faults: string[] = []
  for (const row of sealedKeys) {
    const person = await Person.query(db)
      .whereIn('id', db('users').where({ id: row.userId }).select('personId'))
      .first()
    try {
      const publicKey = createPublicKey(createPrivateKey(decryptStoredPrivateKey(secrets, row)))
      if (person === undefined || !publicKey.equals(createPublicKey(person.publicKey))) {
        faults.push(`The private key of user ${row.userId} does not fit the public key.`)
      }
    } catch (error) {
      faults.push(`The private key of user ${row.userId} cannot be opened (${messageOf(error)}).`)
    }
  }
  return faults
}
