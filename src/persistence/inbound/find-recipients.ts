import type { Knex } from 'knex'
import { queryPrepared } from '../database/database.js'

/** A local person as the recipient of a private message. */
export interface RecipientRow {
  readonly userId: number
  readonly personId: number
  readonly guid: string
  readonly address: string
  readonly isClosed: boolean
  readonly sealedPrivateKey: Buffer | null
}

/** Finds local people by guid, closed accounts included. */
export async function findRecipients(db: Knex, guids: readonly string[]): Promise<readonly RecipientRow[]> {
  if (guids.length === 0) return []
  return queryPrepared<RecipientRow>(db, 'recipients', RECIPIENTS_SQL, [[...guids]])
}

const RECIPIENTS_SQL = `
  select
    users.id as "userId",
    people.id as "personId",
    people.guid,
    people.address,
    people.closed_at is not null as "isClosed",
    user_secrets.sealed_private_key as "sealedPrivateKey"
  from people
  join users on users.person_id = people.id
  left join user_secrets on user_secrets.user_id = users.id
  where people.guid = any($1)`
