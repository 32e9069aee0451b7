import type { Knex } from 'knex'
import { named } from './database.js'
import type { PersonSummary } from './listed-posts.js'
import type { NotificationType } from './models/notification.js'
import { openConditions, orderOf, type Page, pageOf, seek, type TimePage } from './paged.js'
import { type PeopleOfPage, peopleOf, personAmong } from './people-of-page.js'

export interface NotificationFilter extends TimePage {
  readonly type?: NotificationType
  readonly onlyUnread?: boolean
  /** Changed later than this. */
  readonly onlyAfter?: Date
}

/** What a client is shown of a notification. */
export interface ListedNotification {
  readonly id: number
  readonly guid: string
  readonly type: NotificationType
  readonly read: boolean
  readonly createdAt: Date
  readonly updatedAt: Date
  /** The post it is about; undefined: it is about a person. */
  readonly target: { readonly guid: string; readonly author: PersonSummary } | undefined
  /** Who did it, in the order of arrival; the first of them where there are very many. */
  readonly actors: readonly PersonSummary[]
}

const MOST_ACTORS = 50

/** The newest first, if the page names no place. */
export async function listedNotifications(
  db: Knex,
  userId: number,
  filter: NotificationFilter,
): Promise<Page<ListedNotification>> {
  const { type, onlyUnread = false, onlyAfter } = filter
  const values: unknown[] = [userId]
  const { conditions, names, narrow } = openConditions(values)
  if (type !== undefined) narrow('of-type', (place) => `type = ${place}`, type)
  if (onlyUnread) narrow('unread', () => 'not read')
  if (onlyAfter !== undefined) narrow('changed-after', (place) => `updated_at > ${place}`, onlyAfter)
  const part = seek(filter, values, { time: 'created_at', id: 'id' })
  const some = `
    select * from notifications where user_id = $1 ${conditions.join(' ')} ${part.condition} ${part.order}`
  const page = `select * from (${some}) as found limit ${part.most}`

  const name = ['notifications', ...names, part.name].join(' ')
  const direction = orderOf(filter) === 'newest first' ? 'desc' : 'asc'
  const text = shown(page, `order by created_at ${direction}, id ${direction}`)
  return pageOf(await found(db, { name, text, values }), filter)
}

/** Undefined: there is none of the user's own with that guid. */
export async function listedNotification(
  db: Knex,
  userId: number,
  guid: string,
): Promise<ListedNotification | undefined> {
  const one = `select * from notifications where guid = $2 and user_id = $1`
  const [notification] = await found(db, { name: 'notification', text: shown(one), values: [userId, guid] })
  return notification
}

/** Those of the user's own that are still there, in no order that matters. */
export async function listedNotificationsOf(
  db: Knex,
  userId: number,
  ids: readonly number[],
): Promise<readonly ListedNotification[]> {
  const some = `select * from notifications where user_id = $1 and id = any($2::bigint[])`
  return found(db, { name: 'notifications-of-ids', text: shown(some), values: [userId, ids] })
}

interface NotificationQuery {
  readonly name: string
  readonly text: string
  readonly values: readonly unknown[]
}

/** All in one row; null: there is nothing of the kind. */
interface Found {
  readonly notifications: readonly Row[] | null
  readonly people: PeopleOfPage
}

interface Row extends Omit<ListedNotification, 'createdAt' | 'updatedAt' | 'target' | 'actors'> {
  readonly createdAt: string
  readonly updatedAt: string
  readonly postGuid: string | null
  readonly authorId: number
  readonly actorIds: readonly number[]
}

async function found(db: Knex, { name, text, values }: NotificationQuery): Promise<readonly ListedNotification[]> {
  const [all] = await named<Found>(db, name, text, values)
  const person = personAmong(all?.people)
  return (all?.notifications ?? []).map(
    ({ id, guid, type, read, createdAt, updatedAt, postGuid, authorId, actorIds }) => ({
      id,
      guid,
      type,
      read,
      createdAt: new Date(createdAt),
      updatedAt: new Date(updatedAt),
      target: postGuid === null ? undefined : { guid: postGuid, author: person(authorId) },
      actors: actorIds.map(person),
    }),
  )
}

const firstActors = `array(
  select person_id from notification_actors where notification_id = chosen.id order by notification_actors.id limit ${MOST_ACTORS}
)`

function shown(which: string, order = ''): string {
  return `
    with page as materialized (
      select chosen.*, posts.guid as post_guid, posts.author_id, ${firstActors} as actor_ids
      from (${which}) as chosen left join posts on posts.id = chosen.post_id
    )
    select
      (
        select json_agg(notification)
        from (
          select
            id, guid, type, read, created_at as "createdAt", updated_at as "updatedAt",
            post_guid as "postGuid", author_id as "authorId", actor_ids as "actorIds"
          from page ${order}
        ) as notification
      ) as notifications,
      ${peopleOf('select author_id from page union all select unnest(actor_ids) from page')} as people`
}
