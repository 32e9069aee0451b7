import type { Knex } from 'knex'
import { queryRow, queryRows } from '../database/database.js'
import { isActorShownSql } from '../notifications/shown-actors.js'
import { NOW_SQL } from '../sql/database-time.js'
import type { NotificationMailKind, StaffMailKind } from './mail-kinds.js'

/** The delivery of each kind that is not changed by a user, as two lists. */
export interface KindDefaults {
  readonly immediate: readonly string[]
  readonly daily: readonly string[]
}

/** Users who get notification mails: open, with a confirmed mailbox that works, and not switched off. */
const GETS_NOTIFICATION_MAILS_SQL = `users.closed_at is null and users.locked_at is null and users.close_at is null
  and users.email_confirmed_at is not null and users.mail_enabled and users.mail_state <> 'suppressed'`

const KIND_SQL = `case when notifications.type = 'commented_on_post' then 'comment_on_post' else notifications.type end`

const PREFERENCE_SQL = `left join mail_preferences as chosen on chosen.user_id = users.id and chosen.kind = ${KIND_SQL}`

/** The user has not blocked the actor, and moderators do not hide them. */
function isNamedSql(actors: string): string {
  return `${isActorShownSql(actors, 'users.id')} and not exists (
    select from blocks where blocks.user_id = users.id and blocks.person_id = ${actors}.person_id
  )`
}

/** Notifications with a named actor whose post is neither muted, hidden by the user nor hidden by a moderator. */
const IS_SHOWN_SQL = `exists (
    select from notification_actors as actors where actors.notification_id = notifications.id and ${isNamedSql('actors')}
  )
  and not exists (select from muted_posts as muted where muted.user_id = users.id and muted.post_id = notifications.post_id)
  and not exists (select from hidden_posts as hidden where hidden.user_id = users.id and hidden.post_id = notifications.post_id)
  and not exists (
    select from posts where posts.id = notifications.post_id and posts.public_before_hiding is not null
  )`

export interface DueNotificationMail {
  readonly userId: number
  readonly kind: NotificationMailKind
  readonly notificationId?: number
  readonly conversationId?: number
}

/** The unread notifications among these whose users want a mail at once and have had none for them. */
export async function findDueNotificationMails(
  db: Knex,
  ids: readonly number[],
  { immediate }: KindDefaults,
): Promise<readonly DueNotificationMail[]> {
  return queryRows<DueNotificationMail>(
    db,
    `select notifications.id as "notificationId", users.id as "userId", ${KIND_SQL} as kind
     from notifications join users on users.id = notifications.user_id ${PREFERENCE_SQL}
     where notifications.id = any(:ids::bigint[]) and not notifications.read and ${GETS_NOTIFICATION_MAILS_SQL} and ${IS_SHOWN_SQL}
       and (chosen.delivery = 'immediate' or (chosen.delivery is null and ${KIND_SQL} = any(:immediate::text[])))
       and not exists (select from notice_mails where notice_mails.notification_id = notifications.id)
     order by notifications.id`,
    { ids, immediate },
  )
}

export async function recordNotificationMails(db: Knex, notificationIds: readonly number[]): Promise<void> {
  if (notificationIds.length === 0) return
  await db('notice_mails')
    .insert(notificationIds.map((notificationId) => ({ notificationId })))
    .onConflict()
    .ignore()
}

/**
 * The conversations of these messages whose users want a mail at once; notes the mail. A conversation has one mail until it is read:
 * more unread messages than have come since the last mail mean that it is not.
 */
export async function takeDueConversations(
  db: Knex,
  messageIds: readonly number[],
): Promise<readonly DueNotificationMail[]> {
  return queryRows<DueNotificationMail>(db, TAKEN_CONVERSATIONS_SQL, { messageIds })
}

const TAKEN_CONVERSATIONS_SQL = `
  with news as (
    select messages.conversation_id, users.id as user_id, max(messages.id) as message_id
    from messages
    join conversation_visibilities as visible on visible.conversation_id = messages.conversation_id and visible.unread > 0
    join users on users.person_id = visible.person_id and users.person_id <> messages.author_id
    left join mail_preferences as chosen on chosen.user_id = users.id and chosen.kind = 'private_message'
    left join conversation_mails as mailed
      on mailed.conversation_id = messages.conversation_id and mailed.user_id = users.id
    where messages.id = any(:messageIds::bigint[]) and ${GETS_NOTIFICATION_MAILS_SQL}
      and coalesce(chosen.delivery, 'immediate') = 'immediate'
      and not exists (select from blocks where blocks.user_id = users.id and blocks.person_id = messages.author_id)
      and (mailed.message_id is null or visible.unread <= (
        select count(*) from messages as newer
        where newer.conversation_id = messages.conversation_id and newer.id > mailed.message_id
          and newer.author_id <> users.person_id
      ))
    group by messages.conversation_id, users.id
  )
  insert into conversation_mails (conversation_id, user_id, message_id)
  select conversation_id, user_id, message_id from news order by 1, 2
  on conflict (conversation_id, user_id) do update set message_id = excluded.message_id
  returning conversation_id as "conversationId", user_id as "userId", 'private_message' as kind`

/** The data of a mail about a notification. */
export interface NotificationMailRow {
  readonly kind: string
  /** The person who acted last. */
  readonly name: string
  readonly address: string
  readonly actors: number
  readonly personGuid: string
  readonly postGuid: string | null
  /** Whether the text may be in a mail now. */
  readonly isPublic: boolean
  readonly text: string | null
}

/** Undefined: it was read, or may no longer be shown. */
export async function findNotificationMail(db: Knex, notificationId: number): Promise<NotificationMailRow | undefined> {
  const [row] = await queryRows<NotificationMailRow>(
    db,
    `${NOTIFICATION_MAILS_SQL} where notifications.id = ? and not notifications.read and ${GETS_NOTIFICATION_MAILS_SQL} and ${IS_SHOWN_SQL}`,
    [notificationId],
  )
  return row
}

/** The text is that of the comment or of the mentioning post; nothing of a post that is marked as not safe for work. */
const NOTIFICATION_MAILS_SQL = `
  select ${KIND_SQL} as kind, coalesce(nullif(last.name, ''), last.address) as name, last.address, last.guid as "personGuid",
    (select count(*)::integer from notification_actors as others
     where others.notification_id = notifications.id and ${isNamedSql('others')}) as actors,
    posts.guid as "postGuid",
    coalesce(posts.public and posts.text !~* '#nsfw' and not coalesce(profiles.nsfw, false), false) as "isPublic",
    case
      when notifications.type = 'mentioned' then posts.text
      when notifications.type in ('commented_on_post', 'also_commented', 'mentioned_in_comment') then coalesce(
        (select text from comments where comments.id = notifications.comment_id),
        (select text from comments where comments.post_id = posts.id and comments.author_id = last.id and not comments.hidden
         order by comments.id desc limit 1)
      )
    end as text
  from notifications
  join users on users.id = notifications.user_id
  join lateral (
    select people.* from notification_actors as actors join people on people.id = actors.person_id
    where actors.notification_id = notifications.id and ${isNamedSql('actors')}
    order by actors.id desc limit 1
  ) as last on true
  left join posts on posts.id = notifications.post_id
  left join profiles on profiles.person_id = posts.author_id`

export interface DigestRows {
  readonly rows: readonly NotificationMailRow[]
  readonly count: number
}

/** The unread notifications of a digest: daily ones, and those whose immediate mail was beyond the limits. */
export async function findDigest(
  db: Knex,
  {
    userId,
    mailId,
    defaults,
    limit,
  }: {
    readonly userId: number
    readonly mailId: number
    readonly defaults: KindDefaults
    readonly limit: number
  },
): Promise<DigestRows> {
  const where = `
    where users.id = :userId and not notifications.read and ${GETS_NOTIFICATION_MAILS_SQL} and ${IS_SHOWN_SQL} and ${IN_DIGEST_SQL}
      and notifications.created_at <= (select created_at from mails where id = :mailId)`
  const values = { userId, mailId, ...defaults, limit }
  const { count } = await queryRow<{ readonly count: number }>(
    db,
    `select count(*)::integer as count from notifications join users on users.id = notifications.user_id ${PREFERENCE_SQL} ${where}`,
    values,
  )
  const rows = await queryRows<NotificationMailRow>(
    db,
    `${NOTIFICATION_MAILS_SQL} ${PREFERENCE_SQL} ${where} order by notifications.created_at desc, notifications.id desc limit :limit`,
    values,
  )
  return { rows, count }
}

const IN_DIGEST_SQL = `notifications.created_at > coalesce(users.digest_at, users.email_confirmed_at)
  and (
    chosen.delivery = 'daily' or (chosen.delivery is null and ${KIND_SQL} = any(:daily::text[]))
    or ((chosen.delivery = 'immediate' or (chosen.delivery is null and ${KIND_SQL} = any(:immediate::text[])))
      and notifications.created_at < now() - interval '5 minutes'
      and not exists (select from notice_mails where notice_mails.notification_id = notifications.id))
  )`

export async function listTimeZones(db: Knex): Promise<readonly string[]> {
  const rows = await queryRows<{ readonly zone: string }>(
    db,
    `select distinct time_zone as zone from users where ${GETS_NOTIFICATION_MAILS_SQL}`,
  )
  return rows.map(({ zone }) => zone)
}

/** Claims the digests of a local date; returns the users with something unread. Each user is claimed once for a date. */
export async function claimDigests(
  transaction: Knex.Transaction,
  zone: { readonly timeZone: string; readonly date: string; readonly hour: number; readonly defaults: KindDefaults },
): Promise<readonly number[]> {
  const { timeZone, date, hour, defaults } = zone
  const rows = await queryRows<{ readonly id: number }>(
    transaction,
    `with claimed as (
       update users set digest_on = :date
       where time_zone = :timeZone and digest_hour <= :hour and (digest_on is null or digest_on < :date) and ${GETS_NOTIFICATION_MAILS_SQL}
       returning id
     )
     select id from claimed where exists (
       select from notifications join users on users.id = notifications.user_id ${PREFERENCE_SQL}
       where users.id = claimed.id and not notifications.read and ${IN_DIGEST_SQL}
     ) order by id`,
    { timeZone, date, hour, ...defaults },
  )
  return rows.map(({ id }) => id)
}

/** The next digest begins where this one ended. */
export async function recordDigest(transaction: Knex.Transaction, userId: number, mailId: number): Promise<void> {
  await transaction('users')
    .where({ id: userId })
    .update({ digestAt: transaction('mails').where({ id: mailId }).select('createdAt') })
}

/** Takes an advisory lock: two simultaneous transactions would each enqueue a mail for the same moderator. */
export async function lockStaffMails(transaction: Knex.Transaction): Promise<void> {
  await transaction.raw(`select pg_advisory_xact_lock(hashtextextended('staff mails', 0))`)
}

/** Records that the text of a mail is composed: what is reported from now on is not in it, and needs another mail. */
export async function recordStaffMailComposed(transaction: Knex.Transaction, id: number): Promise<void> {
  await lockStaffMails(transaction)
  await transaction('mails')
    .where({ id })
    .update({ composedAt: transaction.raw(NOW_SQL) })
}

/** The next attempt composes the text of an unsent mail again, with everything that has been reported. */
export async function clearStaffMailComposed(db: Knex, id: number): Promise<void> {
  await db('mails').where({ id, sentAt: null }).update({ composedAt: null })
}

/** Moderators and admins who want a mail of this kind, except one person; none while such a mail of theirs is not composed. */
export async function findStaffForMail(
  db: Knex,
  kind: StaffMailKind,
  exceptPersonGuid: string | undefined,
): Promise<readonly { readonly userId: number; readonly secondsSinceLast: number | null }[]> {
  return queryRows<{ readonly userId: number; readonly secondsSinceLast: number | null }>(
    db,
    `select users.id as "userId", (
       select extract(epoch from now() - max(coalesce(sent_at, composed_at)))::integer from mails where mails.user_id = users.id and mails.kind = :kind
     ) as "secondsSinceLast"
     from users join people on people.id = users.person_id
     left join mail_preferences as chosen on chosen.user_id = users.id and chosen.kind = :kind
     where users.role is not null and ${GETS_NOTIFICATION_MAILS_SQL} and coalesce(chosen.delivery, 'immediate') <> 'never'
       and people.guid is distinct from :exceptPersonGuid
       and not exists (
         select from mails where mails.user_id = users.id and mails.kind = :kind and mails.sent_at is null and mails.composed_at is null
           and mails.created_at > now() - interval '1 hour'
       )
     order by users.id`,
    { kind, exceptPersonGuid: exceptPersonGuid ?? null },
  )
}

/** The author of the newest message of a conversation that a user has not read. Undefined: blocked, by the user, or there is none. */
export async function findAuthorOfUnread(
  db: Knex,
  { userId, conversationId }: { readonly userId: number; readonly conversationId: number },
): Promise<{ readonly name: string; readonly address: string } | undefined> {
  const [author] = await queryRows<{ readonly name: string; readonly address: string }>(
    db,
    `select coalesce(nullif(people.name, ''), people.address) as name, people.address
     from messages join people on people.id = messages.author_id
     join users on users.id = :userId and users.person_id <> messages.author_id
     join conversation_visibilities as visible
       on visible.conversation_id = messages.conversation_id and visible.person_id = users.person_id and visible.unread > 0
     where messages.conversation_id = :conversationId
       and not exists (select from blocks where blocks.user_id = users.id and blocks.person_id = messages.author_id)
       and people.restriction is distinct from 'block'
     order by messages.id desc limit 1`,
    { userId, conversationId },
  )
  return author
}
