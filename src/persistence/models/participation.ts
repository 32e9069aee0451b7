import { randomBytes } from 'node:crypto'
import type { Knex } from 'knex'
import { involve } from '../involvements.js'
import { Model } from './model.js'
import { Person } from './person.js'

/** A person hears of what happens under a post. */
export class Participation extends Model {
  static override tableName = 'participations'

  declare id: number
  declare guid: string
  declare postId: number
  declare authorId: number
  /** How many subscriptions, comments, likes, votes and reshares hold it; it goes with the last. */
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

  /** One more reason for each of these people to hear of the post; a count of one says that it is the first. */
  static async hold(
    transaction: Knex.Transaction,
    postId: number,
    personIds: readonly number[],
  ): Promise<readonly Pick<Participation, 'guid' | 'authorId' | 'count'>[]> {
    const ids = [...new Set(personIds)].sort((one, other) => one - other)
    const guids = ids.map(() => randomBytes(16).toString('hex'))
    const { rows } = await transaction.raw(holdParticipations, [postId, guids, ids])
    await involve(transaction, postId, ids)
    return rows
  }
}

const holdParticipations = `
  insert into participations (post_id, guid, author_id)
  select ?::bigint, guid, author_id from unnest(?::text[], ?::bigint[]) as held (guid, author_id)
  on conflict (post_id, author_id) do update set count = participations.count + 1
  returning guid, author_id as "authorId", count`
