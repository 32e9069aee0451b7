import type { Knex } from 'knex'
import { queryPrepared } from '../database/database.js'
import { type OffsetPage, type Page, toPage } from '../sql/keyset-page.js'
import type { ListedPerson } from './list-contacts.js'

/** The people whom a user blocks, the newest block first. */
export async function listBlocksOfUser(db: Knex, userId: number, page: OffsetPage): Promise<Page<ListedPerson>> {
  const rows = await queryPrepared<ListedPerson>(
    db,
    'blocks of user',
    `select people.guid, people.address, people.name, people.avatar_url as "avatarUrl"
     from blocks join people on people.id = blocks.person_id
     where blocks.user_id = $1
     order by blocks.created_at desc, blocks.person_id desc
     offset $2 limit $3`,
    [userId, page.offset, page.limit + 1],
  )
  return toPage(rows, page)
}
