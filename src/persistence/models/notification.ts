import type { Knex } from 'knex'
import type { QueryBuilder } from 'objection'
import { Model } from './model.js'
import { Person } from './person.js'
import { Post } from './post.js'

export const NOTIFICATION_TYPES = [
  'commented_on_post',
  'also_commented',
  'mentioned_in_comment',
  'mentioned',
  'liked',
  'liked_comment',
  'reshared',
  'started_sharing',
  'contacts_birthday',
] as const

export type NotificationType = (typeof NOTIFICATION_TYPES)[number]

/** A notification of a user. The type determines which of the four references are set; a constraint checks it. */
export class Notification extends Model {
  static override tableName = 'notifications'

  declare id: number
  declare guid: string
  declare userId: number
  declare type: NotificationType
  /** The post that clients show as the target, for any type. */
  declare postId: number | null
  declare commentId: number | null
  declare mentionId: number | null
  declare personId: number | null
  /** Generated column: the id of the target, by which notifications are merged. */
  declare readonly targetId: number
  /** Birthdays only, as YYYY-MM-DD. */
  declare day: string | null
  declare read: boolean
  /** Marked unread while a newer one about the same target is unread. New actors are not merged into it. */
  declare superseded: boolean
  declare createdAt: Date
  declare updatedAt: Date

  declare actors?: NotificationActor[]
  declare post?: Post | null

  static override relationMappings = () => ({
    actors: {
      relation: Model.HasManyRelation,
      modelClass: NotificationActor,
      join: { from: 'notifications.id', to: 'notification_actors.notificationId' },
      modify: inOrderOfArrival,
    },
    post: {
      relation: Model.BelongsToOneRelation,
      modelClass: Post,
      join: { from: 'notifications.postId', to: 'posts.id' },
    },
  })

  static async markUnread(db: Knex, userId: number, guid: string): Promise<void> {
    await db.raw(UNREAD_NOTIFICATION_SQL, [userId, guid])
  }

  static async markRead(db: Knex, userId: number, guid: string): Promise<void> {
    await db.raw(READ_NOTIFICATION_SQL, { userId, guid })
  }

  /** Resumes merging after notifications were marked read: for each target with the newest unread superseded one. */
  static async resumeMerging(db: Knex, userId: number): Promise<void> {
    await db.raw(RESUMED_MERGING_SQL, [userId])
  }
}

const UNREAD_NOTIFICATION_SQL = `
  update notifications as marked set read = false, superseded = exists (
    select from notifications as other
    where other.user_id = marked.user_id and other.type = marked.type and other.target_id = marked.target_id
      and other.id <> marked.id and not other.read and not other.superseded
  )
  where marked.user_id = ? and marked.guid = ? and marked.read`

const READ_NOTIFICATION_SQL = `
  with marked as (
    update notifications set read = true where user_id = :userId and guid = :guid and not read
    returning id, type, target_id, superseded
  )
  update notifications set superseded = false where id = (
    select other.id from notifications as other join marked using (type, target_id)
    where other.user_id = :userId and other.id <> marked.id and not other.read and other.superseded and not marked.superseded
    order by other.updated_at desc, other.id desc limit 1
  )`

const RESUMED_MERGING_SQL = `
  update notifications set superseded = false where id in (
    select distinct on (type, target_id) id from notifications as left_over
    where user_id = ? and not read and superseded and not exists (
      select from notifications as other
      where other.user_id = left_over.user_id and other.type = left_over.type and other.target_id = left_over.target_id
        and not other.read and not other.superseded
    )
    order by type, target_id, updated_at desc, id desc
  )`

function inOrderOfArrival(query: QueryBuilder<NotificationActor>): void {
  query.orderBy('id')
}

export class NotificationActor extends Model {
  static override tableName = 'notification_actors'
  static override idColumn = ['notificationId', 'personId']

  declare notificationId: number
  declare personId: number
  /** Ascends with the order of arrival. */
  declare id: number

  declare person?: Person

  static override relationMappings = () => ({
    person: {
      relation: Model.BelongsToOneRelation,
      modelClass: Person,
      join: { from: 'notification_actors.personId', to: 'people.id' },
    },
  })
}
