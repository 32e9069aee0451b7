import type { Knex } from 'knex'
import { queryPreparedRow } from '../database/database.js'
import type { NotificationType } from '../models/notification.js'
import {
  decodePeople,
  type FindPerson,
  groupPeopleByOwner,
  type OwnedPerson,
  type PersonSummary,
  peopleSql,
} from '../people/person-summaries.js'
import {
  type AggregatedColumns,
  aggregateColumns,
  booleanColumn,
  type ColumnLists,
  nullableNumberColumn,
  numberColumn,
  type RowOfAggregate,
  textColumn,
  timeColumn,
  valueAt,
} from '../sql/column-lists.js'
import { createConditionList, keysetClauses, type Page, type TimePage, toPage } from '../sql/keyset-page.js'
import { HAS_SHOWN_ACTOR_SQL, isActorShownSql } from './shown-actors.js'

export interface NotificationFilter extends TimePage {
  readonly type?: NotificationType
  readonly onlyUnread?: boolean
  /** Changed later than this. */
  readonly onlyAfter?: Date
}

/** A notification as clients see it. */
export interface ListedNotification {
  readonly id: number
  readonly guid: string
  readonly type: NotificationType
  readonly read: boolean
  readonly createdAt: Date
  readonly updatedAt: Date
  /** The post it is about; undefined: it is about a person. */
  readonly target: { readonly guid: string; readonly author: PersonSummary } | undefined
  /** Actors in the order of arrival, up to `MAX_ACTORS`. */
  readonly actors: readonly PersonSummary[]
}

const MAX_ACTORS = 50

/** Lists a page of the notifications of a user, newest first unless the page has a position. */
export async function listNotificationsOfUser(
  db: Knex,
  userId: number,
  filter: NotificationFilter,
): Promise<Page<ListedNotification>> {
  const { type, onlyUnread = false, onlyAfter } = filter
  const values: unknown[] = [userId]
  const { conditions, names, addCondition } = createConditionList(values)
  if (type !== undefined) addCondition('of-type', (place) => `type = ${place}`, type)
  if (onlyUnread) addCondition('unread', () => 'not read')
  if (onlyAfter !== undefined) addCondition('changed-after', (place) => `updated_at > ${place}`, onlyAfter)
  const part = keysetClauses(filter, values, { time: 'created_at', id: 'id' })
  const candidatesSql = `
    select * from notifications
    where user_id = $1 ${conditions.join(' ')} ${part.condition} and ${HAS_SHOWN_ACTOR_SQL} ${part.order}`
  const pageSql = `select * from (${candidatesSql}) as found limit ${part.maxRows}`
  const name = ['notifications', ...names, part.name].join(' ')
  return toPage(await queryNotifications(db, { name, rowsSql: pageSql, values }), filter)
}

/** Undefined: the user has no notification with that guid. */
export async function findListedNotification(
  db: Knex,
  userId: number,
  guid: string,
): Promise<ListedNotification | undefined> {
  const rowSql = `select * from notifications where guid = $2 and user_id = $1 and ${HAS_SHOWN_ACTOR_SQL}`
  const [notification] = await queryNotifications(db, { name: 'notification', rowsSql: rowSql, values: [userId, guid] })
  return notification
}

/** Lists the user's notifications by ids, in any order. */
export async function listNotificationsByIds(
  db: Knex,
  userId: number,
  ids: readonly number[],
): Promise<readonly ListedNotification[]> {
  const rowsSql = `select * from notifications where user_id = $1 and id = any($2::bigint[]) and ${HAS_SHOWN_ACTOR_SQL}`
  return queryNotifications(db, { name: 'notifications-of-ids', rowsSql, values: [userId, ids] })
}

interface NotificationQuery {
  readonly name: string
  /** Selects the notifications, in the order in which they are to be listed. */
  readonly rowsSql: string
  readonly values: readonly unknown[]
}

const notificationAggregate = aggregateColumns({
  id: numberColumn('id'),
  read: booleanColumn('read'),
  createdAt: timeColumn('created_at'),
  updatedAt: timeColumn('updated_at'),
  postId: nullableNumberColumn('post_id'),
  guid: textColumn('guid'),
  type: textColumn<NotificationType>('type'),
})

const targetAggregate = aggregateColumns({
  id: numberColumn('id'),
  authorId: numberColumn('author_id'),
  guid: textColumn('guid'),
})

const actorAggregate = aggregateColumns<OwnedPerson>({
  ownerId: numberColumn('notification_id'),
  personId: numberColumn('person_id'),
})

/** The whole page in one row: a list for each column. */
interface NotificationColumns {
  readonly notifications: AggregatedColumns
  readonly targets: AggregatedColumns
  readonly actors: AggregatedColumns
  readonly people: AggregatedColumns
}

async function queryNotifications(
  db: Knex,
  { name, rowsSql, values }: NotificationQuery,
): Promise<readonly ListedNotification[]> {
  const rows = await queryPreparedRow<NotificationColumns>(db, name, () => notificationsSql(rowsSql), values)
  const { id: ids, guid, type, read, createdAt, updatedAt, postId } = notificationAggregate.decode(rows.notifications)
  const person = decodePeople(rows.people)
  const targetOf = targetAmong(targetAggregate.decode(rows.targets), person)
  const actorsOf = groupPeopleByOwner(actorAggregate.decode(rows.actors), person)
  return ids.map((id, index) => ({
    id,
    guid: valueAt(guid, index),
    type: valueAt(type, index),
    read: valueAt(read, index),
    createdAt: new Date(valueAt(createdAt, index)),
    updatedAt: new Date(valueAt(updatedAt, index)),
    target: targetOf(valueAt(postId, index)),
    actors: actorsOf(id),
  }))
}

function targetAmong(
  { id: ids, guid, authorId }: ColumnLists<RowOfAggregate<typeof targetAggregate>>,
  person: FindPerson,
) {
  const places = new Map(ids.map((id, index) => [id, index]))
  return (id: number | null): ListedNotification['target'] => {
    const place = id === null ? undefined : places.get(id)
    if (place === undefined) return undefined
    return { guid: valueAt(guid, place), author: person(valueAt(authorId, place)) }
  }
}

/** Returns one row with aggregated columns. Posts and actors are looked up once for the whole page instead of once per notification. */
function notificationsSql(rowsSql: string): string {
  return `
    select notifications, targets, actors, ${peopleSql('about.author_ids || doing.person_ids')} as people
    from (
      select ${notificationAggregate.select} as notifications, array_agg(id) as ids, array_agg(post_id) as post_ids
      from (${rowsSql}) as found
    ) as page
    cross join lateral (
      select ${targetAggregate.select} as targets, array_agg(author_id) as author_ids from posts where id = any(page.post_ids)
    ) as about
    cross join lateral (
      select ${actorAggregate.select} as actors, array_agg(person_id) as person_ids from (${FIRST_ACTORS_SQL}) as actor
    ) as doing`
}

const FIRST_ACTORS_SQL = `
  select notification_id, person_id
  from (
    select notification_id, person_id, row_number() over (partition by notification_id order by id) as rank
    from notification_actors as actors where notification_id = any(page.ids) and ${isActorShownSql('actors', '$1')}
  ) as actor
  where rank <= ${MAX_ACTORS}`
