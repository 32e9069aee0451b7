import { hasRowSql } from '../sql/has-row.js'

/** SQL condition: moderators do not block the person who has begun the conversation. Two lookups by primary key. */
export function isConversationShownSql(conversationId: string): string {
  return `not ${hasRowSql(`conversations as begun join people as blocked on blocked.id = begun.author_id
    where begun.id = ${conversationId} and blocked.restriction = 'block'`)}`
}
