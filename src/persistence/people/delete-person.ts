import type { Knex } from 'knex'
import type { RecordKind } from '../../protocol/entities/registry.js'
import { queryRow, queryRows } from '../database/database.js'
import { inTransaction } from '../database/transactions.js'
import { recordPurgedAuthor } from '../moderation/cases.js'
import { purgeDeletedPosts, ROW_BATCH_SIZE } from '../posts/delete-posts.js'
import { destroyEntities } from '../posts/destroy-entities.js'
import { RECORD_KINDS, RECORD_TABLES } from '../sql/record-tables.js'
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

/** The numbers in which the records of each kind are counted; undefined: in none. */
const COUNTED_AS: Readonly<Record<RecordKind, Exclude<keyof PersonRows, 'contacts'> | undefined>> = {
  post: 'posts',
  photo: 'photos',
  comment: 'comments',
  like: 'likes',
  poll_participation: 'votes',
  participation: undefined,
  poll: undefined,
  conversation: 'conversations',
  message: 'messages',
}

const counts = RECORD_KINDS.flatMap((kind) => {
  const name = COUNTED_AS[kind]
  return name === undefined
    ? []
    : `(select count(*) from ${RECORD_TABLES[kind].table} where author_id = :id)::integer as ${name},`
})

const ROW_COUNTS_SQL = `
  select
    ${counts.join('\n    ')}
    (select count(*) from contacts where person_id = :id)::integer as contacts`

/** Counts the rows that `deletePerson` deletes. */
export async function countRowsOfPerson(db: Knex, personId: number): Promise<PersonRows> {
  return queryRow<PersonRows>(db, ROW_COUNTS_SQL, { id: personId })
}

/**
 * Deletes a person of another pod and everything that refers to them, in transactions of bounded size. After a failure, the next run
 * continues. A message of the person that arrives in the meantime creates them again.
 */
export async function deletePerson(db: Knex, personId: number, now: Date): Promise<void> {
  await inTransaction(db, async (transaction) => {
    await recordPurgedAuthor(transaction, personId, now)
    await emptyPeople(transaction, [personId], now)
  })
  await purgeDeletedPosts(db)
  for (const kind of kindsWith('destroyed_in_chunks')) await destroyAll(db, kind, personId)
  for (const kind of kindsWith('deleted_in_chunks')) await deleteAll(db, kind, personId)
  await inTransaction(db, (transaction) => deletePersonRow(transaction, personId))
}

/** Deletes a person of another pod of whom `countRowsOfPerson` finds no rows, in the transaction of the caller. */
export async function deletePersonWithoutRows(
  transaction: Knex.Transaction,
  personId: number,
  now: Date,
): Promise<void> {
  await recordPurgedAuthor(transaction, personId, now)
  await emptyPeople(transaction, [personId], now)
  for (const kind of kindsWith('deleted_in_chunks')) await deleteAll(transaction, kind, personId)
  await deletePersonRow(transaction, personId)
}

async function deletePersonRow(transaction: Knex.Transaction, personId: number): Promise<void> {
  await transaction.raw(`delete from account_migrations where old_person_id = :id or new_person_id = :id`, {
    id: personId,
  })
  const rows = await queryRows<{ readonly guid: string }>(
    transaction,
    `delete from people where id = ? and pod_id is not null returning guid`,
    [personId],
  )
  await reassignGuids(
    transaction,
    rows.map(({ guid }) => guid),
  )
}

type Tables = typeof RECORD_TABLES
type Deletion = Tables[RecordKind]['whenAuthorIsDeleted']
type KindWith<Wanted extends Deletion> = {
  [Kind in RecordKind]: Tables[Kind]['whenAuthorIsDeleted'] extends Wanted ? Kind : never
}[RecordKind]

/** The other rows of the person are deleted by their foreign keys. */
function kindsWith<Wanted extends Deletion>(wanted: Wanted): readonly KindWith<Wanted>[] {
  return RECORD_KINDS.filter((kind): kind is KindWith<Wanted> => RECORD_TABLES[kind].whenAuthorIsDeleted === wanted)
}

async function deleteAll(db: Knex, kind: KindWith<'deleted_in_chunks'>, authorId: number): Promise<void> {
  const { table } = RECORD_TABLES[kind]
  const oldest = `id = any(array(select id from ${table} where author_id = ? order by id limit ?))`
  for (let count = ROW_BATCH_SIZE; count === ROW_BATCH_SIZE; ) {
    count = await db(table).whereRaw(oldest, [authorId, ROW_BATCH_SIZE]).del()
  }
}

async function destroyAll(db: Knex, kind: KindWith<'destroyed_in_chunks'>, authorId: number): Promise<void> {
  const { table } = RECORD_TABLES[kind]
  for (let count = ROW_BATCH_SIZE; count === ROW_BATCH_SIZE; ) {
    count = await inTransaction(db, async (transaction) => {
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
