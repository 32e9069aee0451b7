import type { Knex } from 'knex'
import { named, namedList } from './database.js'
import type { NotificationType } from './models/notification.js'
import type { Person } from './models/person.js'
import { openConditions, orderOf, type Page, pageOf, seek, type TimePage } from './paged.js'

export interface NotificationFilter extends TimePage {
  readonly type?: NotificationType
  readonly onlyUnread?: boolean
  /** Changed later than this. */
  readonly onlyAfter?: Date
}

type PersonSummary = Pick<Person, 'guid' | 'address' | 'name' | 'avatarUrl'>

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
  const found = `
    select * from notifications where user_id = $1 ${conditions.join(' ')} ${part.condition} ${part.order}`
  const page = `select * from (${found}) as found limit ${part.most}`

  const name = ['notifications', ...names, part.name].join(' ')
  const text = shown(page, orderOf(filter) === 'newest first' ? 'desc' : 'asc')
  const rows = await namedList<Row>(db, name, text, { values, times: ['createdAt', 'updatedAt'] })
  return pageOf(rows.map(read), filter)
}

/** Undefined: there is none of the user's own with that guid. */
export async function listedNotification(
  db: Knex,
  userId: number,
  guid: string,
): Promise<ListedNotification | undefined> {
  const one = `select * from notifications where guid = $2 and user_id = $1`
  const [row] = await named<Row>(db, 'notification', shown(one, 'desc'), [userId, guid])
  return row && read(row)
}

/** Those of the user's own that are still there, in no order that matters. */
export async function listedNotificationsOf(
  db: Knex,
  userId: number,
  ids: readonly number[],
): Promise<readonly ListedNotification[]> {
  const some = `select * from notifications where user_id = $1 and id = any($2::bigint[])`
  const rows = await named<Row>(db, 'notifications-of-ids', shown(some, 'asc'), [userId, ids])
  return rows.map(read)
}

interface Row extends Omit<ListedNotification, 'target'> {
  readonly postGuid: string | null
  readonly author: PersonSummary
}

const summary = `
  json_build_object('guid', people.guid, 'address', people.address, 'name', people.name, 'avatarUrl', people.avatar_url)`

const firstActors = `
  select json_agg(${summary} order by actor.id)
  from (
    select * from notification_actors where notification_id = page.id order by notification_actors.id limit ${MOST_ACTORS}
  ) as actor
  join people on people.id = actor.person_id`

function shown(page: string, order: 'asc' | 'desc'): string {
  return `
    select
      page.id, page.guid, page.type, page.read, page.created_at as "createdAt", page.updated_at as "updatedAt",
      posts.guid as "postGuid", ${summary} as author, (${firstActors}) as actors
    from (${page}) as page
    left join posts on posts.id = page.post_id
    left join people on people.id = posts.author_id
    order by page.created_at ${order}, page.id ${order}`
}

function read(row: Row): ListedNotification {
  const { id, guid, type, createdAt, updatedAt, postGuid, author, actors } = row
  const target = postGuid === null ? undefined : { guid: postGuid, author }
  return { id, guid, type, read: row.read, createdAt, updatedAt, target, actors }
}
