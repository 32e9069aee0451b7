import type { Knex } from 'knex'
import { IS_ASLEEP, IS_PROVEN } from './due-deliveries.js'

/** Who is to hear of something. Those who live here are among them and get no delivery. */
export type Audience =
  | {
      /** Everybody who has this post of one of our people. */
      readonly of: 'post'
      readonly postId: number
      /** Nobody on the pod of this person: it has it already, and has told its own people. */
      readonly exceptPodOfPerson?: number
      /** And everybody whom this comment mentions, if the post is public. */
      readonly andMentionedIn?: number
      readonly and?: readonly number[]
    }
  /** The same for a photo that is no part of a post. */
  | { readonly of: 'photo'; readonly photoId: number; readonly and?: readonly number[] }
  /** Everybody who shares with the user or with whom the user shares. */
  | { readonly of: 'contacts'; readonly userId: number; readonly and?: readonly number[] }
  | { readonly of: 'people'; readonly personIds: readonly number[] }

export interface NewMessage {
  readonly record: string
  readonly guid: string
  readonly verb: string
  readonly senderId: number
  readonly public: boolean
  /** The payload. */
  readonly entity: string
}

/** A pod that has something to be delivered now. */
export interface ReachedPod {
  readonly podId: number
  /** Its last exchange went well, and not long ago. */
  readonly proven: boolean
}

/**
 * Writes a message and all its deliveries with one statement, and tells whom they go to. Pods that are asleep get none and
 * count them, blocked ones get none. A message that is there already gets the deliveries that it does not have.
 */
export async function insertDeliveries(
  transaction: Knex.Transaction,
  message: NewMessage,
  audience: Audience,
): Promise<readonly ReachedPod[]> {
  const { rows } = await transaction.raw(deliveriesTo(members[audience.of]), {
    ...message,
    postId: audience.of === 'post' ? audience.postId : null,
    commentId: audience.of === 'post' ? (audience.andMentionedIn ?? null) : null,
    photoId: audience.of === 'photo' ? audience.photoId : null,
    userId: audience.of === 'contacts' ? audience.userId : null,
    people: audience.of === 'people' ? [...audience.personIds] : [...(audience.and ?? [])],
    exceptPodOf: audience.of === 'post' ? (audience.exceptPodOfPerson ?? null) : null,
  })
  return rows
}

/** The same for messages that are for one person each, and all different: any number with one statement. */
export async function insertLetters(
  transaction: Knex.Transaction,
  letters: readonly (NewMessage & { readonly personId: number })[],
): Promise<readonly ReachedPod[]> {
  if (letters.length === 0) return []
  const { rows } = await transaction.raw(deliveriesOfLetters, [JSON.stringify(letters)])
  return rows
}

/** Something that was told, or was to be told. */
export interface Told {
  readonly record: string
  readonly guid: string
}

/** Takes back what has not arrived yet, wherever it was to go. */
export async function deleteCreations(transaction: Knex.Transaction, gone: readonly Told[]): Promise<void> {
  if (gone.length === 0) return
  await transaction.raw(
    `delete from outbound_messages using unnest(?::text[], ?::text[]) as gone (record, guid)
     where outbound_messages.record = gone.record and outbound_messages.guid = gone.guid and verb = 'create'`,
    [gone.map(({ record }) => record), gone.map(({ guid }) => guid)],
  )
}

/** Ids of people, some of them several times. */
const members: Readonly<Record<Audience['of'], string>> = {
  post: `
    with post as (select id, author_id, root_id, public from posts where id = cast(:postId as bigint))
    select contacts.person_id as id from post
      join users on users.person_id = post.author_id
      join contacts on contacts.user_id = users.id
      where post.public
    union all
    select mentions.person_id from post join mentions on mentions.post_id in (post.id, post.root_id) where post.public
    union all
    select mentions.person_id from post
      join mentions on mentions.comment_id = cast(:commentId as bigint)
      where post.public
    union all
    select reshares.author_id from post join posts as reshares on reshares.root_id = post.id where post.public
    union all
    select participations.author_id from post
      join participations on participations.post_id = post.id
      where post.public
    union all
    select roots.author_id from post join posts as roots on roots.id = post.root_id
    union all
    select contacts.person_id from post
      join post_aspects on post_aspects.post_id = post.id
      join aspect_memberships on aspect_memberships.aspect_id = post_aspects.aspect_id
      join contacts on contacts.id = aspect_memberships.contact_id
      where not post.public`,
  photo: `
    with photo as (select id, author_id, public from photos where id = cast(:photoId as bigint))
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

/** What did not go to pods that are asleep is counted there, what goes out makes their jobs. */
const countedAndTold = `locked as (
    select id from pods where id in (select pod_id from skipped) order by id for no key update
  ), counted as (
    update pods set skipped_deliveries = pods.skipped_deliveries + skipped.count
    from skipped
    join locked on locked.id = skipped.pod_id
    where pods.id = skipped.pod_id
  )
  select distinct pod_id as "podId", proven from recipients where pod_id in (select pod_id from delivered)`

/**
 * Who was named is told even when their account is closed: it may be the very message that says so. A message that is there
 * already is touched, so that nobody clears it away meanwhile.
 */
function deliveriesTo(audience: string): string {
  return `
    with wanted as (
      select id, false as named from (${audience}) as audience
      union all
      select unnest(cast(:people as bigint[])), true
    ), recipients as (
      select
        people.id as person_id,
        pods.id as pod_id,
        ${IS_ASLEEP} as asleep,
        ${IS_PROVEN} as proven
      from (select id, bool_or(named) as named from wanted group by id) as persons
      join people on people.id = persons.id
      join pods on pods.id = people.pod_id
      where (people.closed_at is null or persons.named)
        and pods.blocked_at is null
        and pods.id is distinct from (select pod_id from people where id = cast(:exceptPodOf as bigint))
    ), message as (
      insert into outbound_messages (record, guid, verb, sender_id, public, entity)
      select :record, :guid, :verb, cast(:senderId as bigint), cast(:public as boolean), :entity
      where exists (select from recipients where not asleep)
      on conflict (record, guid, verb) where record not in ('profile', 'contact')
        do update set created_at = excluded.created_at
      returning id, public
    ), delivered as (
      insert into deliveries (message_id, pod_id, person_id)
      select distinct message.id, recipients.pod_id, case when not message.public then recipients.person_id end
      from message
      cross join recipients
      where not recipients.asleep
      order by 2, 3
      on conflict do nothing
      returning pod_id
    ), skipped as (
      select pod_id, count(distinct case when not cast(:public as boolean) then person_id else 0 end) as count
      from recipients
      where asleep
      group by pod_id
    ), ${countedAndTold}`
}

const deliveriesOfLetters = `
  with letters as (
    select * from json_to_recordset(?::json) as row(
      record text, guid text, verb text, "senderId" bigint, public boolean, entity text, "personId" bigint
    )
  ), recipients as (
    select letters.*, pods.id as pod_id, ${IS_ASLEEP} as asleep, ${IS_PROVEN} as proven
    from letters
    join people on people.id = letters."personId"
    join pods on pods.id = people.pod_id
    where pods.blocked_at is null
  ), messages as (
    insert into outbound_messages (record, guid, verb, sender_id, public, entity)
    select record, guid, verb, "senderId", public, entity
    from recipients where not asleep order by record, guid, verb
    on conflict (record, guid, verb) where record not in ('profile', 'contact')
      do update set created_at = excluded.created_at
    returning id, record, guid, verb
  ), delivered as (
    insert into deliveries (message_id, pod_id, person_id)
    select messages.id, recipients.pod_id, case when not recipients.public then recipients."personId" end
    from messages
    join recipients using (record, guid, verb)
    order by 1
    on conflict do nothing
    returning pod_id
  ), skipped as (
    select pod_id, count(*) from recipients where asleep group by pod_id
  ), ${countedAndTold}`
