import type { Knex } from 'knex'
import { inTransaction } from '../database/transactions.js'
import { purgeDeletedPosts, ROW_BATCH_SIZE } from '../posts/delete-posts.js'
import { type DestructibleKind, destroyEntities } from '../posts/destroy-entities.js'
import { emptyPeople } from './empty-people.js'
import { restoreOwnGuids } from './person-guids.js'

/** Numbers of rows of a person of another pod. */
export interface PersonRows {
  readonly posts: number
  readonly photos: number
  readonly comments: number
  readonly likes: number
  readonly votes: number
  readonly conversations: number
  readonly messages: number
  readonly contacts: number
}

/** Counts the rows that `deletePerson` deletes. */
export async function countRowsOfPerson(db: Knex, personId: number): Promise<PersonRows> {
  const { rows } = await db.raw(
    `select
       (select count(*) from posts where author_id = :id)::integer as posts,
       (select count(*) from photos where author_id = :id)::integer as photos,
       (select count(*) from comments where author_id = :id)::integer as comments,
       (select count(*) from likes where author_id = :id)::integer as likes,
       (select count(*) from poll_participations where author_id = :id)::integer as votes,
       (select count(*) from conversations where author_id = :id)::integer as conversations,
       (select count(*) from messages where author_id = :id)::integer as messages,
       (select count(*) from contacts where person_id = :id)::integer as contacts`,
    { id: personId },
  )
  return rows[0]
}

/** Tables that are deleted in chunks by `author_id`. The other rows are deleted by their foreign keys to the person. */
const recordsOfAuthor: readonly (readonly [DestructibleKind, string])[] = [
  ['comment', 'comments'],
  ['like', 'likes'],
  ['poll_participation', 'poll_participations'],
  ['conversation', 'conversations'],
]

/**
 * Deletes a person of another pod and everything that refers to them, in transactions of bounded size. After a failure, the next run
 * continues. A message of the person that arrives meanwhile creates them again.
 */
export async function deletePerson(db: Knex, personId: number, now: Date): Promise<void> {
  await inTransaction({ db }, (transaction) => emptyPeople(transaction, [personId], now))
  await purgeDeletedPosts(db)
  for (const [kind, table] of recordsOfAuthor) await destroyAll(db, kind, table, personId)
  for (let count = ROW_BATCH_SIZE; count === ROW_BATCH_SIZE; ) {
    count = await db('messages').whereRaw(oldestMessages, [personId, ROW_BATCH_SIZE]).del()
  }
  await inTransaction({ db }, async (transaction) => {
    await transaction.raw(`delete from account_migrations where old_person_id = :id or new_person_id = :id`, {
      id: personId,
    })
    const { rows }: { rows: readonly { guid: string }[] } = await transaction.raw(
      `delete from people where id = ? and pod_id is not null returning guid`,
      [personId],
    )
    await reassignGuids(
      transaction,
      rows.map(({ guid }) => guid),
    )
  })
}

const oldestMessages = 'id = any(array(select id from messages where author_id = ? order by id limit ?))'

async function destroyAll(db: Knex, kind: DestructibleKind, table: string, authorId: number): Promise<void> {
  for (let count = ROW_BATCH_SIZE; count === ROW_BATCH_SIZE; ) {
    count = await inTransaction({ db }, async (transaction) => {
      const ids: number[] = await transaction(table).where({ authorId }).orderBy('id').limit(ROW_BATCH_SIZE).pluck('id')
      await destroyEntities(transaction, kind, ids)
      return ids.length
    })
  }
}

/** Gives the guids of deleted people to people with a verified signature whose own pods use them. */
async function reassignGuids(transaction: Knex.Transaction, guids: readonly string[]): Promise<void> {
  const ids: number[] = await transaction('people').whereIn('guidAtPod', guids).whereNotNull('provenAt').pluck('id')
  await restoreOwnGuids(transaction, ids)
}
