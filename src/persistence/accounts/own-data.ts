import type { Knex } from 'knex'
import { queryRow } from '../database/database.js'
import { OWN_DATA_LIMITS } from './limits.js'

/** Numbers of stored rows about a user, by category, in the order of the page. */
export const DATA_CATEGORIES = [
  'account',
  'sessions',
  'applications',
  'mails',
  'posts',
  'comments',
  'likes',
  'photos',
  'contacts',
  'conversations',
  'notifications',
  'reports',
  'audit_entries',
  'backups',
] as const

export type DataCategory = (typeof DATA_CATEGORIES)[number]

/** Categories whose rows are counted. */
export type CountedCategory = Exclude<DataCategory, 'account' | 'sessions' | 'applications' | 'mails' | 'backups'>

export interface DataOwner {
  readonly userId: number
  readonly personId: number
  readonly guid: string
  readonly address: string
  readonly username: string
}

/** Counts the rows of each category in one statement. Entries of the audit log are found by the indexes on its guids. */
export async function countOwnData(db: Knex, owner: DataOwner): Promise<Readonly<Record<CountedCategory, number>>> {
  return queryRow<Readonly<Record<CountedCategory, number>>>(
    db,
    `select
       (select count(*)::int from posts where author_id = :personId) as posts,
       (select count(*)::int from comments where author_id = :personId) as comments,
       (select count(*)::int from likes where author_id = :personId) as likes,
       (select count(*)::int from photos where author_id = :personId) as photos,
       (select count(*)::int from contacts where user_id = :userId) as contacts,
       (select count(*)::int from conversation_visibilities where person_id = :personId) as conversations,
       (select count(*)::int from notifications where user_id = :userId) as notifications,
       (select count(*)::int from reports where user_id = :userId) as reports,
       (select count(*)::int from (
          (select id from audit_entries where target->>'guid' = :guid order by id desc limit :max)
          union
          (select id from audit_entries where actor->>'guid' = :guid order by id desc limit :max)
          limit :max
        ) as own) as audit_entries`,
    { ...owner, max: OWN_DATA_LIMITS.auditEntriesCounted },
  )
}

/** A mail as the list of mails shows it: nothing of its content. */
export interface ListedMail {
  readonly kind: string
  readonly createdAt: Date
  readonly sentAt: Date | null
}

export async function listMailsOfUser(db: Knex, userId: number): Promise<readonly ListedMail[]> {
  return db('mails').where({ userId }).orderBy('id', 'desc').select('kind', 'createdAt', 'sentAt')
}
