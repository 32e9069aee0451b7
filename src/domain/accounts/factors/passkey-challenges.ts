import { randomBytes } from 'node:crypto'
import type { Knex } from 'knex'
import type { Services } from '../../../services/services.js'
import { hashToken } from '../token-hash.js'
import { FACTOR_LIMITS } from './limits.js'

/** The purpose of a challenge, and a secret of the browser or session that has to answer it. */
export interface ChallengeUse {
  readonly purpose: 'sign_in' | 'confirm' | 'add'
  readonly browser: string
}

/** Creates a challenge for a passkey. */
export async function makeChallenge(
  { db, now }: Pick<Services, 'db' | 'now'>,
  { purpose, browser }: ChallengeUse,
): Promise<string> {
  const challenge = randomBytes(32).toString('base64url')
  await db('passkey_challenges').insert({
    challengeHash: hashToken(challenge),
    purpose,
    browserHash: hashToken(browser),
    expiresAt: new Date(now().getTime() + FACTOR_LIMITS.challengeSeconds * 1_000),
  })
  return challenge
}

/** Uses up a challenge. False: it is unknown, used or expired, or was made for another purpose or browser. */
export async function useChallenge(
  db: Knex,
  challenge: string,
  { purpose, browser, at }: ChallengeUse & { readonly at: Date },
): Promise<boolean> {
  const rowCount = await db('passkey_challenges')
    .where({ challengeHash: hashToken(challenge), purpose, browserHash: hashToken(browser) })
    .where('expiresAt', '>', at)
    .delete()
  return rowCount === 1
}
