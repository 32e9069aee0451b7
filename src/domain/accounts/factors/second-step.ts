import { randomBytes } from 'node:crypto'
import type { Knex } from 'knex'
import { User } from '../../../persistence/models/user.js'
import type { Services } from '../../../services/services.js'
import { type Credential, isPasswordHash, mayHaveAccess } from '../sign-in.js'
import { hashToken } from '../token-hash.js'
import { FACTOR_LIMITS } from './limits.js'

/** How a second step began: with the password, or in a session that lacks only the second factor. */
export type FirstFactor = { readonly passwordAt: Date } | { readonly sessionUid: string }

/** A sign-in whose password was right, or a session, whose second factor is missing. It is valid until the password changes. */
export interface SecondStep extends Credential {
  readonly userId: number
  /** The authorization request that it continues. */
  readonly requestUid: string | null
  readonly returnTo: string | null
  readonly first: FirstFactor
}

/** Stores a sign-in until its second step. Returns its id, which is a secret of the browser. */
export async function beginSecondStep(
  services: Pick<Services, 'db' | 'now'>,
  step: {
    readonly userId: number
    readonly first: FirstFactor
    readonly requestUid: string | undefined
    readonly returnTo: string | undefined
  },
): Promise<string> {
  const id = randomBytes(32).toString('base64url')
  await services.db('second_steps').insert({
    idHash: hashToken(id),
    userId: step.userId,
    requestUid: step.requestUid ?? null,
    returnTo: step.returnTo ?? null,
    ...step.first,
    expiresAt: new Date(services.now().getTime() + FACTOR_LIMITS.secondStepSeconds * 1_000),
  })
  return id
}

/** Undefined: it is unknown, has expired or has failed too often, or its account is closed or locked. */
export async function findSecondStep(
  services: Pick<Services, 'db' | 'now'>,
  id: string,
): Promise<SecondStep | undefined> {
  const row = await openSteps(services.db, id, services.now()).first(
    'userId',
    'requestUid',
    'returnTo',
    'passwordAt',
    'sessionUid',
  )
  const user = row && (await User.query(services.db).findById(row.userId).withGraphFetched('[person, secrets]'))
  const passwordHash = user?.secrets?.passwordHash
  const first = row && firstFactorOf(row)
  if (!first || !user?.person || !passwordHash || !mayHaveAccess(user)) return undefined
  const userId = user.id
  const { address } = user.person
  return {
    userId,
    address,
    requestUid: row.requestUid,
    returnTo: row.returnTo,
    first,
    isValid: () => isPasswordHash(services, userId, passwordHash),
  }
}

/** Counts a try before the code is checked. False: there were too many. */
export async function countTry(services: Pick<Services, 'db' | 'now'>, id: string): Promise<boolean> {
  return (await openSteps(services.db, id, services.now()).increment('tries', 1)) === 1
}

/** Ends the step. False: another request has used it. */
export async function finishSecondStep({ db }: Pick<Services, 'db'>, id: string): Promise<boolean> {
  return (
    (await db('second_steps')
      .where({ idHash: hashToken(id) })
      .delete()) === 1
  )
}

function firstFactorOf({ passwordAt, sessionUid }: FirstFactorColumns): FirstFactor | undefined {
  if (passwordAt !== null) return { passwordAt }
  return sessionUid === null ? undefined : { sessionUid }
}

interface FirstFactorColumns {
  readonly passwordAt: Date | null
  readonly sessionUid: string | null
}

function openSteps(db: Knex, id: string, now: Date) {
  return db('second_steps')
    .where({ idHash: hashToken(id) })
    .where('tries', '<', FACTOR_LIMITS.attemptsOfSecondStep)
    .where('expiresAt', '>', now)
}
