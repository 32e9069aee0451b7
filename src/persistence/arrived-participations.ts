import type { Knex } from 'knex'
import { takenBack } from './models/tombstone.js'

export interface ArrivedParticipation {
  readonly guid: string
  readonly author: string
  readonly postGuid: string
  readonly createdAt: Date
}

/** One for each person and post, with one statement for any number; returns those that are really new. */
export async function insertParticipations(
  transaction: Knex.Transaction,
  participations: readonly ArrivedParticipation[],
): Promise<readonly { readonly id: number; readonly guid: string }[]> {
  const { rows } = await transaction.raw(newParticipations, [JSON.stringify(participations)])
  return rows
}

const newParticipations = `
  insert into participations (guid, post_id, author_id, created_at)
  select arrived.guid, posts.id, people.id, arrived."createdAt"
  from json_to_recordset(?::json) as arrived(guid text, author text, "postGuid" text, "createdAt" timestamptz)
  join people on people.address = arrived.author
  join posts on posts.guid = arrived."postGuid"
  where people.closed_at is null and not ${takenBack('participations', 'arrived.guid', ['people.id'])}
  order by posts.id, people.id
  on conflict do nothing
  returning id, guid`
