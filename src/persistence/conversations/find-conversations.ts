import type { Knex } from 'knex'
import { queryPrepared } from '../database/database.js'

export interface KnownConversation {
  readonly guid: string
  /** Addresses of all participants, including unknown ones. */
  readonly participants: readonly string[]
}

export async function findConversations(db: Knex, guids: readonly string[]): Promise<readonly KnownConversation[]> {
  return guids.length === 0
    ? []
    : queryPrepared<KnownConversation>(db, 'known-conversations', KNOWN_CONVERSATIONS_SQL, [[...guids]])
}

const KNOWN_CONVERSATIONS_SQL = `
  select conversations.guid, array(
    select people.address
    from conversation_visibilities as visible join people on people.id = visible.person_id
    where visible.conversation_id = conversations.id
    union all
    select address from conversation_unknown_participants where conversation_id = conversations.id
  ) as participants
  from conversations
  where conversations.guid = any($1)`
