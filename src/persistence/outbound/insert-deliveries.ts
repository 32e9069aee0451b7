import type { Knex } from 'knex'
import { queryPrepared, queryRows } from '../database/database.js'
import { SENT_PUBLICLY_SQL, sentPubliclySql } from '../posts/visibility.js'
import { opaqueParam } from '../sql/opaque-param.js'
import { rowByRowSql } from '../sql/row-by-row.js'
import {
  exemptForBlockedPeopleSql,
  exemptFromBlocksSql,
  POD_IS_ASLEEP_SQL,
  POD_IS_PROVEN_SQL,
} from './delivery-conditions.js'
import { DELIVERY_PRIORITY, type DeliveryPriority } from './delivery-priority.js'
import type { DuePod } from './due-deliveries.js'
import { UNDELIVERED_LIMITS } from './limits.js'
import type { OutboundRecord, OutboundVerb } from './outbound-record.js'
import { remainingPodsSql } from './remaining-pods.js'

/** Selects the recipients of a message. Local people can be among them and get no delivery. */
export type RecipientSelector =
  | {
      /** All recipients of this post of a local person. */
      readonly kind: 'post'
      readonly postId: number
      /** Leaves out the pod of this person, which has the entity and distributes it to its own people. */
      readonly exceptPodOfPersonId?: number
      /** Adds the people whom this comment mentions, if the post is public. */
      readonly mentionedInCommentId?: number
      readonly alsoPersonIds?: readonly number[]
    }
  /** All recipients of a photo without a post. */
  | { readonly kind: 'photo'; readonly photoId: number; readonly alsoPersonIds?: readonly number[] }
  /** All contacts of a user, in both directions of sharing. */
  | { readonly kind: 'contacts'; readonly userId: number; readonly alsoPersonIds?: readonly number[] }
  | { readonly kind: 'people'; readonly personIds: readonly number[] }

export interface NewOutboundMessage {
  readonly record: OutboundRecord
  readonly guid: string
  readonly verb: OutboundVerb
  readonly senderId: number | null
  readonly public: boolean
  /** The payload. */
  readonly entity: string
  readonly priority: DeliveryPriority
  /** Trace of the request or message that caused it. */
  readonly trace: string | null
}

/**
 * Inserts a message and all its deliveries with one statement; returns the pods with new deliveries. Pods that are asleep get none
 * and count the skipped ones. Blocked pods get retractions and account deletions only. A message that exists gets the deliveries
 * that are missing.
 */
export async function insertDeliveries(
  transaction: Knex.Transaction,
  message: NewOutboundMessage,
  recipients: RecipientSelector,
): Promise<readonly DuePod[]> {
  return queryRows<DuePod>(transaction, deliveriesToRecipientsSql(RECIPIENTS_SQL[recipients.kind]), {
    ...message,
    postId: recipients.kind === 'post' ? recipients.postId : null,
    commentId: recipients.kind === 'post' ? (recipients.mentionedInCommentId ?? null) : null,
    photoId: recipients.kind === 'photo' ? recipients.photoId : null,
    userId: recipients.kind === 'contacts' ? recipients.userId : null,
    people: recipients.kind === 'people' ? [...recipients.personIds] : [...(recipients.alsoPersonIds ?? [])],
    exceptPodOf: recipients.kind === 'post' ? (recipients.exceptPodOfPersonId ?? null) : null,
  })
}

/** Inserts any number of messages for one person each, as `insertDeliveries`, with one statement. */
export async function insertPersonalDeliveries(
  transaction: Knex.Transaction,
  messages: readonly (NewOutboundMessage & { readonly personId: number })[],
): Promise<readonly DuePod[]> {
  if (messages.length === 0) return []
  return queryPrepared<DuePod>(transaction, 'personal-deliveries', PERSONAL_DELIVERIES_SQL, [JSON.stringify(messages)])
}

/** A relayable of another pod, under a local post, for the subscribers of the post. */
export interface NewRelay extends NewOutboundMessage {
  readonly postId: number
  /** The people whom this comment mentions receive it too, if the post is public. */
  readonly commentId: number | null
  /** The pod of this person receives nothing: it has the relayable. */
  readonly authorId: number
}

/** Writes any number of relays and their deliveries with one statement; the subscribers of a post are read once. */
export async function insertRelays(
  transaction: Knex.Transaction,
  relays: readonly NewRelay[],
): Promise<readonly DuePod[]> {
  if (relays.length === 0) return []
  return queryPrepared<DuePod>(transaction, 'relay-deliveries', RELAY_DELIVERIES_SQL, [JSON.stringify(relays)])
}

/** Queries for the ids of recipients; ids can repeat. */
const RECIPIENTS_SQL: Readonly<Record<RecipientSelector['kind'], string>> = {
  post: subscribersSql('cast(:postId as bigint)', 'cast(:commentId as bigint)'),
  photo: `
    with photo as (select id, author_id, ${sentPubliclySql('photos')} as public from photos where id = cast(:photoId as bigint))
    select contacts.person_id as id from photo
      join users on users.person_id = photo.author_id
      join contacts on contacts.user_id = users.id
      where photo.public
    union all
    select contacts.person_id from photo
      join photo_aspects on photo_aspects.photo_id = photo.id
      join aspect_memberships on aspect_memberships.aspect_id = photo_aspects.aspect_id
      join contacts on contacts.id = aspect_memberships.contact_id
      where not photo.public`,
  contacts: `select person_id as id from contacts where user_id = cast(:userId as bigint)`,
  people: `select cast(null as bigint) as id where false`,
}

/**
 * Query for the people who receive interactions on a post of a local user: contacts, mentioned people, resharers, participants and
 * the author of the root; for a private post, the members of its aspects. `commentId` is null unless a comment mentions more people.
 */
function subscribersSql(postId: string, commentId: string): string {
  return `
    with post as (select id, author_id, root_id, ${SENT_PUBLICLY_SQL} as public from posts where id = ${postId})
    select contacts.person_id as id from post
      join users on users.person_id = post.author_id
      join contacts on contacts.user_id = users.id
      where post.public
    union all
    select claimed_followers.person_id from post
      join users on users.person_id = post.author_id
      join claimed_followers on claimed_followers.user_id = users.id
      where post.public
    union all
    select mentions.person_id from post join mentions on mentions.post_id in (post.id, post.root_id) where post.public
    union all
    select mentions.person_id from post
      join mentions on mentions.comment_id = ${commentId}
      where post.public
    union all
    select reshares.author_id from post join posts as reshares on reshares.root_id = post.id where post.public
    union all
    select participations.author_id from post
      join participations on participations.post_id = post.id
      where post.public
    union all
    select reshared.author_id from post join posts as reshared on reshared.id = post.root_id
    union all
    select contacts.person_id from post
      join post_aspects on post_aspects.post_id = post.id
      join aspect_memberships on aspect_memberships.aspect_id = post_aspects.aspect_id
      join contacts on contacts.id = aspect_memberships.contact_id
      where not post.public`
}

/** The parts in which the statements differ. */
interface DeliveryStatement {
  /** CTEs up to `recipients`, each row of which has `pod_id`, `asleep` and `is_proven`. */
  readonly recipients: string
  /** Query for the columns of the new messages. */
  readonly messages: string
  /** Query for the id of the message, the pod, the person of a private message, and the priority. */
  readonly deliveries: string
  /** Query for the pods with skipped deliveries, and their number. */
  readonly skipped: string
  /** Query for the results that are known at once: message, outcome and pods. */
  readonly results?: string
}

/**
 * Inserts messages and deliveries, counts skipped deliveries, and returns the pods with new deliveries. `created_at` of an existing
 * message is renewed, so that pruning does not delete it in the meantime. Pruning may have emptied its entity before.
 */
function insertDeliveriesSql({ recipients, messages, deliveries, skipped, results }: DeliveryStatement): string {
  return `
  with ${recipients}, messages as (
    insert into outbound_messages (record, guid, verb, sender_id, public, entity, trace_id)
    ${messages}
    on conflict (record, guid, verb) where record not in ('profile', 'contact')
      do update set created_at = excluded.created_at,
        entity = coalesce(nullif(outbound_messages.entity, ''), excluded.entity)
    returning id, record, guid, verb, public
  ), inserted_deliveries as (
    insert into deliveries (message_id, pod_id, person_id, priority)
    ${deliveries}
    on conflict do nothing
    returning pod_id
  ), skipped as (
    ${skipped}
  ), locked as (
    select id from pods where id in (select pod_id from skipped) order by id for no key update
  ), counted as (
    update pods set skipped_deliveries = pods.skipped_deliveries + skipped.count
    from skipped
    join locked on locked.id = skipped.pod_id
    where pods.id = skipped.pod_id
  )${
    results === undefined
      ? ''
      : `, results as (
    insert into message_results (message_id, outcome, pod_ids)
    ${results}
  )`
  }
  select distinct pod_id as "podId", is_proven as "isProven" from recipients where pod_id in (select pod_id from inserted_deliveries)`
}

/** The columns of a message in JSON, and those that only one kind of messages has. */
function inputMessagesSql(particular: string): string {
  return `select * from json_to_recordset(${opaqueParam('$1', 'json')}) as row(
      record text, guid text, verb text, "senderId" bigint, public boolean, entity text, priority smallint, trace uuid, ${particular}
    )`
}

/**
 * One message and its deliveries. People who are named by id receive it even if their account is closed, because the message can be
 * the account deletion itself.
 */
function deliveriesToRecipientsSql(recipientIdsSql: string): string {
  return insertDeliveriesSql({
    recipients: `people_reached as (
      select id, false as named from (${recipientIdsSql}) as recipient_ids
      union all
      select unnest(cast(:people as bigint[])), true
    ), located as (
      select
        people.id as person_id,
        pods.id as pod_id,
        ${POD_IS_ASLEEP_SQL} as asleep,
        ${POD_IS_PROVEN_SQL} as is_proven,
        people.closed_at is not null as closed,
        people.restriction is not distinct from 'block' and not ${exemptForBlockedPeopleSql(':verb', ':record')} as person_blocked,
        pods.blocked_at is not null and not ${exemptFromBlocksSql(':verb', ':record')} as pod_blocked
      from (select id, bool_or(named) as named from people_reached group by id) as persons
      ${rowByRowSql('people', 'people.id = persons.id')}
      ${rowByRowSql('pods', 'pods.id = people.pod_id')}
      where (people.closed_at is null or persons.named)
        and pods.id is distinct from (select pod_id from people where id = cast(:exceptPodOf as bigint))
    ), recipients as (
      select person_id, pod_id, asleep, is_proven from located where not person_blocked and not pod_blocked
    ), left_out as (
      -- The message is needed for the report about a post. For a new post it is stored even if no pod gets it.
      select 'asleep' as outcome, array_agg(distinct pod_id) as pod_ids
      from recipients where asleep and cast(:record as text) = 'post'
      union all
      select 'blocked', array_agg(distinct pod_id)
      from located where pod_blocked and not closed and cast(:record as text) = 'post'
    )`,
    messages: `
      select :record, :guid, :verb, cast(:senderId as bigint), cast(:public as boolean), :entity, cast(:trace as uuid)
      where exists (select from recipients where not asleep)
        or :verb = 'create' and exists (select from left_out where pod_ids is not null)`,
    deliveries: `
      select distinct messages.id, recipients.pod_id, case when not messages.public then recipients.person_id end,
        cast(:priority as smallint)
      from messages
      cross join recipients
      where not recipients.asleep
      order by 2, 3`,
    skipped: `
      select pod_id, count(distinct case when not cast(:public as boolean) then person_id else 0 end) as count
      from recipients
      where asleep
      group by pod_id`,
    results: `
    select messages.id, left_out.outcome, left_out.pod_ids
    from messages cross join left_out where left_out.pod_ids is not null`,
  })
}

const PERSONAL_DELIVERIES_SQL = insertDeliveriesSql({
  recipients: `input as (${inputMessagesSql('"personId" bigint')}
  ), recipients as (
    -- One index lookup for each message: with old statistics the planner would read the whole tables of people and pods.
    select input.*, pods.id as pod_id, ${POD_IS_ASLEEP_SQL} as asleep, ${POD_IS_PROVEN_SQL} as is_proven
    from input
    cross join lateral (select pod_id from people where people.id = input."personId" offset 0) as people
    cross join lateral (select * from pods where pods.id = people.pod_id offset 0) as pods
    where pods.blocked_at is null or ${exemptFromBlocksSql('input.verb', 'input.record')}
  )`,
  messages: `
    select record, guid, verb, "senderId", public, entity, trace
    from recipients where not asleep order by record, guid, verb`,
  deliveries: `
    select messages.id, recipients.pod_id, case when not recipients.public then recipients."personId" end, priority
    from messages
    join recipients using (record, guid, verb)
    order by 1`,
  skipped: `select pod_id, count(*) from recipients where asleep group by pod_id`,
})

/**
 * Reads the subscribers of each post once for any number of relays. A pod that has never answered gets only a few waiting relays,
 * because pod names can be invented in any number. Relays beyond that are counted as skipped deliveries.
 */
const RELAY_DELIVERIES_SQL = insertDeliveriesSql({
  recipients: `relays as (${inputMessagesSql('"postId" bigint, "commentId" bigint, "authorId" bigint')}
  ), subscribers as (
    select relayed_posts."postId", of_post.id as person_id
    from (select distinct "postId" from relays) as relayed_posts
    cross join lateral (${subscribersSql('relayed_posts."postId"', 'cast(null as bigint)')}) as of_post
    group by 1, 2
  ), people_reached as (
    select relays.record, relays.guid, subscribers.person_id from relays join subscribers using ("postId")
    union
    select relays.record, relays.guid, mentions.person_id
    from relays
    join mentions on mentions.comment_id = relays."commentId"
    where relays.public
  ), recipients as (
    select relays.record, relays.guid, pods.id as pod_id,
      case when not relays.public then people.id end as person_id,
      ${POD_IS_ASLEEP_SQL} as asleep, ${POD_IS_PROVEN_SQL} as is_proven, pods.answered_at is null as unanswered
    from people_reached
    join relays using (record, guid)
    ${rowByRowSql('people', 'people.id = people_reached.person_id')}
    ${rowByRowSql('pods', 'pods.id = people.pod_id')}
    ${rowByRowSql('people', `people.id = relays."authorId"`, 'authors')}
    where people.closed_at is null and people.restriction is distinct from 'block'
      and pods.blocked_at is null and pods.id is distinct from authors.pod_id
    group by 1, 2, 3, 4, 5, 6, 7
  ), remaining as materialized (${remainingPodsSql(
    DELIVERY_PRIORITY.relay,
    UNDELIVERED_LIMITS.relaysOfNeverAnsweredPod,
    'select distinct pod_id from recipients where unanswered and not asleep',
  )}
  ), ranked as (
    select recipients.*, remaining.count as remaining, row_number() over (partition by pod_id order by record, guid) as rank
    from recipients
    left join remaining using (pod_id)
    where not asleep
  )`,
  messages: `
    select record, guid, verb, "senderId", public, entity, trace
    from relays
    where (record, guid) in (select record, guid from ranked where remaining is null or rank <= remaining)
    order by record, guid`,
  deliveries: `
    select messages.id, ranked.pod_id, ranked.person_id, relays.priority
    from messages
    join relays using (record, guid)
    join ranked using (record, guid)
    where ranked.remaining is null or ranked.rank <= ranked.remaining
    order by 1, 2, 3`,
  skipped: `
    select pod_id, count(*) from (
      select pod_id from recipients where asleep
      union all
      select pod_id from ranked where rank > remaining
    ) as left_out
    group by pod_id`,
})
