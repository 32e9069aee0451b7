import type { Knex } from 'knex'
import { queryPrepared } from '../database/database.js'
import type { Aspect } from '../models/aspect.js'
import { type OffsetPage, type Page, toPage } from '../sql/keyset-page.js'

export type ListedAspect = Pick<Aspect, 'id' | 'name' | 'position'>

/** Lists aspects in the order that their owner has chosen. */
export async function listAspectsOfUser(db: Knex, userId: number, page: OffsetPage): Promise<Page<ListedAspect>> {
  const rows = await queryPrepared<ListedAspect>(
    db,
    'aspects',
    'select id, name, position from aspects where user_id = $1 order by position, id offset $2 limit $3',
    [userId, page.offset, page.limit + 1],
  )
  return toPage(rows, page)
}

/** Undefined: the user has no such aspect. */
export async function findAspectOfUser(db: Knex, userId: number, id: number): Promise<ListedAspect | undefined> {
  const [aspect] = await queryPrepared<ListedAspect>(
    db,
    'aspect',
    'select id, name, position from aspects where user_id = $1 and id = $2',
    [userId, id],
  )
  return aspect
}
