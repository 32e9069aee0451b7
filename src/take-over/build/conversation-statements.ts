import { guidSql, insertSkippedRowsSql, isCopiedSql, settingSql, timeOfContentSql, timeSql } from './sql.js'

const MESSAGE_TIME_SQL = timeOfContentSql(
  'map.user_id is null and not map.is_local',
  ...['source.created_at', 'source.updated_at', 'parent.created_at', 'parent.updated_at'],
)

const conversations: readonly string[] = [
  insertSkippedRowsSql(
    'conversations',
    `select source.id, case
       when map.new_id is null then 'D07'
       when not exists (
         select from take_over.conversation_visibilities as visible
         join take_over.map_people as reader on reader.id = visible.person_id and reader.new_id is not null
         where visible.conversation_id = source.id
       ) then 'D07'
     end as code
     from take_over.conversations as source left join take_over.map_people as map on map.id = source.author_id`,
  ),
  `insert into conversations (id, guid, author_id, subject, created_at, updated_at) overriding system value
   select source.id, ${guidSql('conversations', 'source')}, map.new_id,
     case when source.subject ~ '[^[:space:]]' then source.subject else 'No subject' end,
     ${timeSql('source.created_at', 'source.updated_at')}, ${timeSql('source.updated_at', 'source.created_at')}
   from take_over.conversations as source join take_over.map_people as map on map.id = source.author_id
   where ${isCopiedSql('conversations', 'source.id')}`,
  insertSkippedRowsSql(
    'conversation_visibilities',
    `select source.id, case
       when conversations.id is null or map.new_id is null then 'D07'
       when row_number() over (partition by source.conversation_id, map.new_id order by source.id) > 1 then 'D09'
     end as code
     from take_over.conversation_visibilities as source
     left join conversations on conversations.id = source.conversation_id
     left join take_over.map_people as map on map.id = source.person_id`,
  ),
  `insert into conversation_visibilities (conversation_id, person_id, unread, created_at, updated_at)
   select conversations.id, map.new_id, greatest(source.unread, 0), conversations.created_at, conversations.updated_at
   from take_over.conversation_visibilities as source
   join conversations on conversations.id = source.conversation_id
   join take_over.map_people as map on map.id = source.person_id
   where ${isCopiedSql('conversation_visibilities', 'source.id')}`,
  insertSkippedRowsSql(
    'messages',
    `select source.id, case when conversations.id is null or map.new_id is null then 'D07' end as code
     from take_over.messages as source
     left join conversations on conversations.id = source.conversation_id
     left join take_over.map_people as map on map.id = source.author_id`,
  ),
  `insert into messages (id, guid, conversation_id, author_id, text, created_at, arrived_at) overriding system value
   select source.id, ${guidSql('messages', 'source')}, source.conversation_id, map.new_id, source.text,
     ${MESSAGE_TIME_SQL}, ${MESSAGE_TIME_SQL}
   from take_over.messages as source
   join take_over.conversations as parent on parent.id = source.conversation_id
   join take_over.map_people as map on map.id = source.author_id
   where ${isCopiedSql('messages', 'source.id')}`,
]

/** Types of diaspora* with the type here and what the target is. */
const TYPES_SQL = `(values
  ('CommentOnPost', 'commented_on_post', 'Post'), ('AlsoCommented', 'also_commented', 'Post'), ('Liked', 'liked', 'Post'),
  ('Reshared', 'reshared', 'Post'), ('LikedComment', 'liked_comment', 'Comment'), ('MentionedInPost', 'mentioned', 'Mention'),
  ('Mentioned', 'mentioned', 'Mention'), ('MentionedInComment', 'mentioned_in_comment', 'Mention'),
  ('StartedSharing', 'started_sharing', 'Person'), ('ContactsBirthday', 'contacts_birthday', 'Person')
) as types(name, type, target)`

/** A row for each notification that can be shown, with its target. */
const MAP_NOTIFICATIONS_SQL = `
  create unlogged table take_over.map_notifications as
  select source.id, source.recipient_id as user_id, types.type, source.unread,
    case types.target when 'Post' then posts.id when 'Comment' then commented.post_id
      when 'Mention' then coalesce(mentions.post_id, mentioning.post_id) end as post_id,
    case types.target when 'Comment' then commented.id when 'Mention' then mentions.comment_id end as comment_id,
    mentions.id as mention_id, person.new_id as person_id,
    case when types.type = 'contacts_birthday' then coalesce(source.created_at, source.updated_at, timestamp '2010-01-01')::date end as day,
    coalesce(source.updated_at, source.created_at) as changed_at
  from take_over.notifications as source
  join users on users.id = source.recipient_id
  join ${TYPES_SQL} on source.type = 'Notifications::' || types.name and source.target_type = types.target
  left join posts on types.target = 'Post' and posts.id = source.target_id
  left join comments as commented on types.target = 'Comment' and commented.id = source.target_id
  left join mentions on types.target = 'Mention' and mentions.id = source.target_id and mentions.person_id = users.person_id
  left join comments as mentioning on mentioning.id = mentions.comment_id
  left join take_over.map_people as person on types.target = 'Person' and person.id = source.target_id
  where case types.type
      when 'mentioned' then mentions.post_id is not null
      when 'mentioned_in_comment' then mentioning.id is not null
      when 'started_sharing' then exists (
        select from contacts where contacts.user_id = users.id and contacts.person_id = person.new_id and contacts.sharing
      )
      when 'contacts_birthday' then person.new_id is not null
      else coalesce(posts.id, commented.id) is not null
    end
    and exists (
      select from take_over.notification_actors as actors
      join take_over.map_people as map on map.id = actors.person_id and map.new_id is not null
      where actors.notification_id = source.id
    )`

const notifications: readonly string[] = [
  'create index on take_over.notification_actors (notification_id)',
  MAP_NOTIFICATIONS_SQL,
  'create unique index on take_over.map_notifications (id)',
  insertSkippedRowsSql(
    'notifications',
    `select source.id, case
       when map.id is null then 'D14'
       when map.mention_id is not null and row_number() over (partition by map.mention_id order by source.id) > 1 then 'D09'
       when map.day is not null and row_number() over (partition by map.user_id, map.person_id, map.day order by source.id) > 1 then 'D09'
     end as code
     from take_over.notifications as source left join take_over.map_notifications as map on map.id = source.id`,
  ),
  `insert into notifications (
     id, guid, user_id, type, post_id, comment_id, mention_id, person_id, day, read, superseded, created_at, updated_at
   ) overriding system value
   select source.id, ${guidSql('notifications', 'source')}, map.user_id, map.type, map.post_id, map.comment_id, map.mention_id,
     map.person_id, map.day, not map.unread,
     map.unread and map.day is null and row_number() over (
       partition by map.unread, map.user_id, map.type, coalesce(map.mention_id, map.comment_id, map.post_id, map.person_id)
       order by map.changed_at desc, map.id desc
     ) > 1,
     ${timeSql('source.created_at', 'source.updated_at')}, ${timeSql('source.updated_at', 'source.created_at')}
   from take_over.map_notifications as map join take_over.notifications as source on source.id = map.id
   where ${isCopiedSql('notifications', 'source.id')}`,
  insertSkippedRowsSql(
    'notification_actors',
    `select source.id, case
       when notifications.id is null or map.new_id is null then 'D07'
       when row_number() over (partition by source.notification_id, map.new_id order by source.id) > 1 then 'D09'
     end as code
     from take_over.notification_actors as source
     left join notifications on notifications.id = source.notification_id
     left join take_over.map_people as map on map.id = source.person_id`,
  ),
  `insert into notification_actors (id, notification_id, person_id) overriding system value
   select source.id, source.notification_id, map.new_id
   from take_over.notification_actors as source join take_over.map_people as map on map.id = source.person_id
   where ${isCopiedSql('notification_actors', 'source.id')}`,
]

const SKIPPED_REPORTS_SQL = `
  select source.id, case
    when source.item_type not in ('Post', 'Comment') then 'D15'
    when users.id is null or coalesce(posts.id, comments.id) is null then 'D07'
    when row_number() over (partition by source.user_id, source.item_type, source.item_id order by source.id) > 1 then 'D09'
  end as code
  from take_over.reports as source
  left join users on users.id = source.user_id
  left join posts on posts.id = source.item_id and source.item_type = 'Post'
  left join comments on comments.id = source.item_id and source.item_type = 'Comment'`

const CASE_SQL = `
  count(*) as count, min(reports.created_at) as first, max(reports.created_at) as last,
  bool_or(reports.reviewed_at is null) as is_open`

const CASE_COLUMNS_SQL = `target_type, target_guid, author_id, author_guid, author_address, public, text, parent_guid, photo_guids,
  target_created_at, report_count, reporter_count, first_reported_at, last_reported_at, changed_at, state, closed_at`

const REPORTED_SQL = `reported.count, reported.count, reported.first, reported.last, reported.last,
  case when reported.is_open then 'open' else 'dismissed' end, case when not reported.is_open then reported.last end`

/** Reports, each with the case of the reported content. */
const reports: readonly string[] = [
  insertSkippedRowsSql('reports', SKIPPED_REPORTS_SQL),
  `insert into reports (id, user_id, post_id, comment_id, reason, reviewed_at, created_at) overriding system value
   select source.id, source.user_id, case when item_type = 'Post' then item_id end, case when item_type = 'Comment' then item_id end,
     coalesce(source.text, ''), case when source.reviewed then ${timeSql('source.updated_at', 'source.created_at')} end,
     ${timeSql('source.created_at', 'source.updated_at')}
   from take_over.reports as source where ${isCopiedSql('reports', 'source.id')}`,
  `insert into moderation_cases (${CASE_COLUMNS_SQL})
   select 'post', posts.guid, people.id, people.guid, people.address, posts.public, posts.text, roots.guid,
     array(select photos.guid from photos where photos.post_id = posts.id order by photos.position, photos.id), posts.created_at, ${REPORTED_SQL}
   from (select post_id, ${CASE_SQL} from reports where post_id is not null group by post_id) as reported
   join posts on posts.id = reported.post_id join people on people.id = posts.author_id
   left join posts as roots on roots.id = posts.root_id order by posts.id`,
  `insert into moderation_cases (${CASE_COLUMNS_SQL})
   select 'comment', comments.guid, people.id, people.guid, people.address, posts.public, comments.text, posts.guid, '{}',
     comments.created_at, ${REPORTED_SQL}
   from (select comment_id, ${CASE_SQL} from reports where comment_id is not null group by comment_id) as reported
   join comments on comments.id = reported.comment_id join posts on posts.id = comments.post_id
   join people on people.id = comments.author_id order by comments.id`,
  `update reports set case_id = cases.id from moderation_cases as cases, posts
   where posts.id = reports.post_id and cases.target_type = 'post' and cases.target_guid = posts.guid`,
  `update reports set case_id = cases.id from moderation_cases as cases, comments
   where comments.id = reports.comment_id and cases.target_type = 'comment' and cases.target_guid = comments.guid`,
]

/** Counters are counted again; a negative like is not counted. Each row is written once more, not once for each counter. */
const counters: readonly string[] = [
  `update posts set comments_count = counted.comments, likes_count = counted.likes, reshares_count = counted.reshares
   from (
     select post_id, sum(comments) as comments, sum(likes) as likes, sum(reshares) as reshares from (
       select post_id, count(*) as comments, 0 as likes, 0 as reshares from comments group by post_id
       union all
       select post_id, 0, count(*), 0 from likes where positive and post_id is not null group by post_id
       union all
       select root_id, 0, 0, count(*) from posts where root_id is not null group by root_id
     ) as parts group by post_id
   ) as counted where counted.post_id = posts.id`,
  `update comments set likes_count = counted.count
   from (select comment_id, count(*) from likes where positive and comment_id is not null group by comment_id) as counted
   where counted.comment_id = comments.id`,
  `update poll_answers set vote_count = counted.count
   from (select poll_answer_id, count(*) from poll_participations group by poll_answer_id) as counted
   where counted.poll_answer_id = poll_answers.id`,
]

const derivedStatements: readonly string[] = [
  `insert into activity_entries (user_id, post_id, interacted_at)
   select users.id, posts.id, posts.interacted_at from posts join users on users.person_id = posts.author_id
   union
   select users.id, posts.id, posts.interacted_at from participations
   join users on users.person_id = participations.author_id join posts on posts.id = participations.post_id`,
  `insert into periodic (name, last_run_at) values ('birthdays', date_trunc('milliseconds', ${settingSql('built_at')}::timestamptz))`,
]

/** Conversations, notifications, reports, counters, and what follows from other rows. */
export const conversationStatements: readonly string[] = [
  ...conversations,
  ...notifications,
  ...reports,
  ...counters,
  ...derivedStatements,
]
