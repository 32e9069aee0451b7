import { LRUCache } from 'lru-cache'
import { groupCommit } from '../../concurrency/group-commit.js'
import { RECEIVE_LIMITS } from '../../jobs/inbound/limits.js'
import { findLocalGuids } from '../../persistence/inbound/find-local-guids.js'
import { isGuid } from '../../protocol/values.js'
import type { Services } from '../../services/services.js'

/** Distinguishes local recipients of private messages from unknown guids. */
export interface RecipientLookup {
  /** Recent positive answers are cached. A negative answer always comes from the database. */
  isLocal(guid: string): Promise<boolean>
}

interface RecipientsLimits {
  readonly recipients: number
  readonly recipientAgeMs: number
}

/** Runs one statement at a time, so that requests with guessed guids cannot occupy the database. */
export function openRecipientLookup(
  { db }: Pick<Services, 'db'>,
  limits: RecipientsLimits = RECEIVE_LIMITS,
  now = () => performance.now(),
): RecipientLookup {
  const localUntil = new LRUCache<string, number>({ max: limits.recipients })
  const ask = groupCommit(
    { maxConcurrent: 1, maxItems: RECEIVE_LIMITS.recipientsPerQuery },
    (guids: readonly string[]) => findLocalGuids(db, guids),
  )

  return {
    async isLocal(guid) {
      if ((localUntil.get(guid) ?? 0) > now()) return true
      localUntil.delete(guid)
      if (!isGuid(guid) || !(await ask([guid])).has(guid)) return false
      localUntil.set(guid, now() + limits.recipientAgeMs)
      return true
    },
  }
}
