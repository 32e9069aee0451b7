import type { Knex } from 'knex'
import { DAY_MS } from '../../protocol/durations.js'

export interface BrowserOfUser {
  readonly userId: number
  readonly browserHash: Buffer
}

/**
 * Notes a sign-in in a browser, and forgets browsers without one for `days`. Returns whether the browser is new to the user while
 * others are known. The caller has locked the user.
 */
export async function recordKnownBrowser(
  transaction: Knex.Transaction,
  { userId, browserHash }: BrowserOfUser,
  { at, days }: { readonly at: Date; readonly days: number },
): Promise<boolean> {
  const since = new Date(at.getTime() - days * DAY_MS)
  const earlier: readonly { readonly browserHash: Buffer; readonly seenAt: Date }[] = await transaction(
    'known_browsers',
  ).where({ userId })
  await transaction('known_browsers')
    .insert({ userId, browserHash, seenAt: at })
    .onConflict(['userId', 'browserHash'])
    .merge()
  await transaction('known_browsers').where({ userId }).where('seenAt', '<', since).delete()
  const isKnown = earlier.some((row) => row.browserHash.equals(browserHash) && row.seenAt >= since)
  return !isKnown && earlier.length > 0
}
