import type { Knex } from 'knex'
import { isConversationShownSql } from '../conversations/shown-conversations.js'
import { queryPrepared } from '../database/database.js'
import { UNREAD_LIMITS } from './limits.js'
import { HAS_SHOWN_ACTOR_SQL } from './shown-actors.js'

export interface UnreadCounts {
  readonly notifications: number
  readonly conversations: number
  /** Unread messages in these conversations. */
  readonly messages: number
}

/** Reads the partial indices of unread rows, and no more of each than the limit: clients poll this. */
export async function countUnreadItems(
  db: Knex,
  { userId, personId }: { readonly userId: number; readonly personId: number },
): Promise<UnreadCounts> {
  const [counts] = await queryPrepared<UnreadCounts>(db, 'unread-counts', UNREAD_COUNTS_SQL, [userId, personId])
  if (counts === undefined) throw new Error('The statement that counts unread items returned no row.')
  return counts
}

const UNREAD_COUNTS_SQL = `
  select
    (
      select count(*)::integer
      from (
        select from notifications where user_id = $1 and not read and ${HAS_SHOWN_ACTOR_SQL} limit ${UNREAD_LIMITS.maxCounted}
      ) as unread
    ) as notifications,
    count(*)::integer as conversations,
    coalesce(sum(unread), 0)::integer as messages
  from (
    select unread from conversation_visibilities
    where person_id = $2 and unread > 0 and ${isConversationShownSql('conversation_id')} limit ${UNREAD_LIMITS.maxCounted}
  ) as unread`
