import { createHash } from 'node:crypto'
import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'
import { addActivityEntries } from '../notifications/activity.js'
import { Model } from './model.js'
import { Person } from './person.js'

/** A subscription of a person to the interactions on a post. */
export class Participation extends Model {
  static override tableName = 'participations'

  declare id: number
  declare guid: string
  declare postId: number
  declare authorId: number
  /** Number of subscriptions, comments, likes, votes and reshares that are its reason. At zero it is deleted. */
  declare count: number
  declare createdAt: Date

  declare author?: Person

  static override relationMappings = () => ({
    author: {
      relation: Model.BelongsToOneRelation,
      modelClass: Person,
      join: { from: 'participations.authorId', to: 'people.id' },
    },
  })

  /**
   * Subscribes people to a post: adds a reason to their participations, and the post to their activity streams. A returned count of one
   * means that the participation is new.
   */
  static async subscribe(
    transaction: Knex.Transaction,
    postId: number,
    personIds: readonly number[],
  ): Promise<readonly Pick<Participation, 'guid' | 'authorId' | 'count'>[]> {
    const ids = [...new Set(personIds)].sort((one, other) => one - other)
    const rows = await queryRows<Pick<Participation, 'guid' | 'authorId' | 'count'>>(
      transaction,
      STORED_PARTICIPATIONS_SQL,
      [ids, postId],
    )
    await addActivityEntries(transaction, postId, ids)
    return rows
  }
}

/**
 * The guid of a participation that is sent: the same for each participation of a person in a post, because diaspora* keeps the
 * first one until it is retracted, and refuses a second guid.
 */
export function participationGuid(personGuid: string, postGuid: string): string {
  return createHash('sha256').update(textOfGuid(personGuid, postGuid)).digest('hex').slice(0, 32)
}

function textOfGuid(personGuid: string, postGuid: string): string {
  return `participation ${personGuid} ${postGuid}`
}

/** Uses the guid of `participationGuid`, or a random one if another row has that guid: anyone can compute and send it. */
const STORED_PARTICIPATIONS_SQL = `
  insert into participations (post_id, guid, author_id)
  select posts.id, coalesce(
    (select derived.guid where not exists (
      select from participations as others
      where others.guid = derived.guid and (others.post_id, others.author_id) <> (posts.id, people.id)
    )),
    md5(random()::text || clock_timestamp())
  ), people.id
  from posts
  cross join unnest(?::bigint[]) as held (author_id)
  join people on people.id = held.author_id
  cross join lateral (
    select left(
      encode(sha256(convert_to('${textOfGuid("' || people.guid || '", "' || posts.guid || '")}', 'UTF8')), 'hex'), 32
    ) as guid
  ) as derived
  where posts.id = ?
  order by people.id
  on conflict (post_id, author_id) do update set count = participations.count + 1
  returning guid, author_id as "authorId", count`
