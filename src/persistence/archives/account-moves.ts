import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'

/** The move of an account to an account of this pod. */
export interface AccountMove {
  readonly oldAddress: string
  /** Null: this pod never knew the old account. */
  readonly oldPersonId: number | null
  readonly newPersonId: number
  /** The inner signature, by the key of the new account. */
  readonly signature: string
  readonly remotePhotoPath: string | null
  /** Signed by the key of the old account, which is not kept. */
  readonly envelope: string
  /** Null: of an earlier move, whose account has announced it to such pods itself. */
  readonly envelopeFriendica: string | null
  readonly announceUntil: Date
}

/** The move of an address, as this pod has it. */
export interface KnownMove {
  readonly id: number
  readonly newPersonId: number
  /** False: this pod did not know the old account when the move was imported, so its key was not compared. */
  readonly isProven: boolean
  /** Null: of a private message. */
  readonly envelope: string | null
}

/**
 * The move of an address, a proven one if there is one; undefined: it has not moved. An unproven move to an account that was closed
 * later does not count: nobody can prove it.
 */
export async function findMoveOfPerson(db: Knex, oldAddress: string): Promise<KnownMove | undefined> {
  const [row] = await queryRows<KnownMove>(
    db,
    `select id, new_person_id as "newPersonId", old_person_id is not null as "isProven", envelope from (
       select moves.* from account_migrations as moves
       where old_address = :oldAddress and old_person_id is null and not ${HAS_CLOSED_SQL}
       union all
       select moves.* from people join account_migrations as moves on old_person_id = people.id
       where people.address = :oldAddress
     ) as moves
     order by old_person_id is null limit 1`,
    { oldAddress },
  )
  return row
}

/** Whether the new account of a move is closed, and has not moved on. */
const HAS_CLOSED_SQL = `exists (
  select from people where people.id = moves.new_person_id and people.closed_at is not null
    and not exists (select from account_migrations as later where later.old_person_id = people.id)
)`

/** The move of an address to one account. */
export async function findMoveTo(
  db: Knex,
  oldAddress: string,
  newPersonId: number,
): Promise<{ readonly id: number } | undefined> {
  const [row] = await queryRows<{ readonly id: number }>(
    db,
    `select moves.id from account_migrations as moves left join people on people.id = old_person_id
     where new_person_id = :newPersonId and coalesce(old_address, people.address) = :oldAddress
     order by old_person_id is null limit 1`,
    { oldAddress, newPersonId },
  )
  return row
}

/** Stores a move. It replaces an unproven move of the old account to the same account, and one to an account that is closed. */
export async function insertMove(transaction: Knex.Transaction, move: AccountMove): Promise<void> {
  await transaction.raw(
    `delete from account_migrations as moves
     where old_address = :oldAddress and old_person_id is null and (new_person_id = :newPersonId or ${HAS_CLOSED_SQL})`,
    { oldAddress: move.oldAddress, newPersonId: move.newPersonId },
  )
  await transaction('accountMigrations').insert(move)
}

/** The old account of an unproven move has become known, and its key has signed the move. False: there is no such move. */
export async function proveMove(
  transaction: Knex.Transaction,
  { oldAddress, oldPersonId, newPersonId }: Pick<AccountMove, 'oldAddress' | 'oldPersonId' | 'newPersonId'>,
): Promise<boolean> {
  const rowCount = await transaction('accountMigrations')
    .where({ oldAddress, newPersonId })
    .whereNull('oldPersonId')
    .update({ oldPersonId })
  return rowCount > 0
}

/** The message of a move of this address to an open account of this pod that is not proven yet. */
export async function findUnprovenEnvelope(db: Knex, oldAddress: string): Promise<string | undefined> {
  const move = await findMoveOfPerson(db, oldAddress)
  return move === undefined || move.isProven ? undefined : (move.envelope ?? undefined)
}

/** Keeps the message of a move that this pod knows already, and announces the move until `announceUntil`. */
export async function saveAnnouncedEnvelope(
  transaction: Knex.Transaction,
  id: number,
  { envelope, announceUntil }: Pick<AccountMove, 'envelope' | 'announceUntil'>,
): Promise<void> {
  await transaction('accountMigrations')
    .where({ id })
    .update({ envelope: transaction.raw('coalesce(envelope, ?)', [envelope]), announceUntil })
}

/** The moves from these addresses that have led to a person, over any number of steps. */
export async function findMovesTo(
  db: Knex,
  personId: number,
  oldAddresses: readonly string[],
): Promise<readonly { readonly id: number; readonly oldAddress: string }[]> {
  return queryRows<{ readonly id: number; readonly oldAddress: string }>(
    db,
    `with recursive earlier as (
       select id, old_person_id, old_address from account_migrations where new_person_id = ?
       union
       select moves.id, moves.old_person_id, moves.old_address
       from account_migrations as moves join earlier on moves.new_person_id = earlier.old_person_id
     )
     select earlier.id, coalesce(old_address, people.address) as "oldAddress"
     from earlier left join people on people.id = old_person_id
     where coalesce(old_address, people.address) = any(?) order by earlier.id`,
    [personId, [...oldAddresses]],
  )
}

/** A pod to which a move is announced in the first wave, at once. */
export interface AnnouncedPod {
  readonly host: string
  readonly port: number
}

/** The pods of the authors of posts that a person has commented on, liked or subscribed to. */
export async function findPodsOfThreads(db: Knex, personId: number): Promise<readonly AnnouncedPod[]> {
  return queryRows<AnnouncedPod>(
    db,
    `select distinct pods.host, pods.port
     from posts join people on people.id = posts.author_id join pods on pods.id = people.pod_id
     where posts.id in (
       select post_id from comments where author_id = :personId
       union select post_id from likes where author_id = :personId
       union select post_id from participations where author_id = :personId
     )`,
    { personId },
  )
}

/** Notes pods that this pod does not know yet. */
export async function insertUnknownPods(transaction: Knex.Transaction, pods: readonly AnnouncedPod[]): Promise<void> {
  await transaction.raw(
    `insert into pods (host, port, ssl)
     select host, port, true from json_to_recordset(?::json) as input(host text, port integer) order by host, port
     on conflict do nothing`,
    [JSON.stringify(pods)],
  )
}

/**
 * Stores to which pods a move is announced: pods of the first wave at once, all other known pods spread over `hours` (undefined: not at
 * all). Pods that a rule blocks are left out. A repeated call changes nothing.
 */
export async function insertAnnouncements(
  transaction: Knex.Transaction,
  migrationId: number,
  {
    first,
    now,
    hours,
  }: { readonly first: readonly AnnouncedPod[]; readonly now: Date; readonly hours: number | undefined },
): Promise<void> {
  await transaction.raw(
    `insert into migration_announcements (migration_id, pod_id, wave, due_at)
     select :migrationId, pods.id, 1, :now::timestamptz
     from json_to_recordset(:first::json) as input(host text, port integer)
     join pods using (host, port)
     where pods.blocked_at is null order by pods.id
     on conflict do nothing`,
    { migrationId, now, first: JSON.stringify(first) },
  )
  if (hours === undefined) return
  await transaction.raw(
    `insert into migration_announcements (migration_id, pod_id, wave, due_at)
     select :migrationId, pods.id, 2, :now::timestamptz + random() * make_interval(hours => :hours)
     from pods where pods.blocked_at is null order by pods.id
     on conflict do nothing`,
    { migrationId, now, hours },
  )
}

/** A move that is to be announced to a pod now. */
export interface DueAnnouncement {
  readonly migrationId: number
  readonly podId: number
  readonly host: string
  readonly port: number
  readonly ssl: boolean
  readonly envelope: string
  readonly attempts: number
  /** Attempts in a row without an answer. */
  readonly unanswered: number
  readonly announceUntil: Date
  readonly offlineSince: Date | null
  /** The pod has answered a request of this pod at some time. */
  readonly hasEverAnswered: boolean
}

/**
 * Leases announcements that are due: other processes do not see them until the lease is over. A pod that did not answer is due as soon
 * as it has accepted another message, or a check has found it. A pod gets an earlier move of the same person first: the next one waits for its answer.
 */
export async function leaseDueAnnouncements(
  db: Knex,
  { limit, now, leaseSeconds }: { readonly limit: number; readonly now: Date; readonly leaseSeconds: number },
): Promise<readonly DueAnnouncement[]> {
  return queryRows<DueAnnouncement>(
    db,
    `with due as (
       select migration_id, pod_id from migration_announcements join pods on pods.id = migration_announcements.pod_id
       where delivered_at is null and given_up_at is null
         and pods.blocked_at is null and (pods.paused_until is null or pods.paused_until < :now::timestamptz)
         and (due_at <= :now::timestamptz or attempted_at < :now::timestamptz - interval '5 minutes'
           and last_status is null and pods.last_success_at > attempted_at)
         and not exists (
           select from account_migrations as move
           join account_migrations as earlier on earlier.new_person_id in (move.new_person_id, move.old_person_id)
             and earlier.id < move.id and earlier.envelope is not null
           join migration_announcements as before on before.migration_id = earlier.id
           where move.id = migration_announcements.migration_id and before.pod_id = migration_announcements.pod_id
             and before.delivered_at is null and before.given_up_at is null
             and (before.last_status is null or before.last_status >= 500 or before.last_status = 429)
         )
       order by due_at limit :limit for update of migration_announcements skip locked
     ), leased as (
       update migration_announcements as announcement
       set due_at = :now::timestamptz + make_interval(secs => :leaseSeconds), attempted_at = :now
       from due where announcement.migration_id = due.migration_id and announcement.pod_id = due.pod_id
       returning announcement.migration_id, announcement.pod_id, announcement.attempts, announcement.unanswered
     )
     select leased.migration_id as "migrationId", pods.id as "podId", pods.host, pods.port, pods.ssl, attempts, unanswered,
       case when pods.software = 'friendica' then coalesce(envelope_friendica, envelope) else envelope end as envelope,
       announce_until as "announceUntil", pods.offline_since as "offlineSince",
       pods.answered_at is not null or pods.last_success_at is not null as "hasEverAnswered"
     from leased
     join account_migrations on account_migrations.id = leased.migration_id
     join pods on pods.id = leased.pod_id
     where envelope is not null`,
    { limit, now, leaseSeconds },
  )
}

/** The state of an announcement. */
export interface AnnouncementResult {
  readonly migrationId: number
  readonly podId: number
  /** Null: the pod has not answered. */
  readonly lastStatus: number | null
  readonly attempts: number
  readonly unanswered: number
  readonly dueAt: Date
  readonly deliveredAt: Date | null
  readonly givenUpAt: Date | null
}

export async function saveAnnouncement(db: Knex, { migrationId, podId, ...rest }: AnnouncementResult): Promise<void> {
  await db('migrationAnnouncements').where({ migrationId, podId }).update(rest)
}

/** How far the announcement of a move is. */
export interface AnnouncedMove {
  readonly oldAddress: string
  readonly newAddress: string
  readonly movedAt: Date
  readonly announceUntil: Date | null
  readonly delivered: number
  readonly waiting: number
  readonly refused: number
}

export async function listAnnouncedMoves(
  db: Knex,
  { waiting, personId = null }: { readonly waiting: boolean; readonly personId?: number | null },
): Promise<readonly AnnouncedMove[]> {
  return queryRows<AnnouncedMove>(
    db,
    `select coalesce(old_address, old.address) as "oldAddress", people.address as "newAddress", account_migrations.created_at as "movedAt",
       announce_until as "announceUntil", counts.delivered, counts.waiting, counts.refused
     from account_migrations
     join people on people.id = new_person_id and people.pod_id is null
     left join people as old on old.id = old_person_id
     cross join lateral (
       select count(delivered_at)::integer as delivered, count(given_up_at)::integer as refused,
         (count(*) filter (where delivered_at is null and given_up_at is null))::integer as waiting
       from migration_announcements where migration_id = account_migrations.id
     ) as counts
     where announce_until is not null and (not :waiting or counts.waiting > 0) and new_person_id = coalesce(:personId, new_person_id)
     order by account_migrations.id`,
    { waiting, personId },
  )
}

/** A pod to which a move is not announced yet. */
export interface WaitingPod {
  readonly oldAddress: string
  readonly pod: string
  readonly dueAt: Date
  readonly attempts: number
  readonly lastStatus: number | null
  readonly givenUp: boolean
}

export async function listWaitingPods(
  db: Knex,
  { personId = null }: { readonly personId?: number | null } = {},
): Promise<readonly WaitingPod[]> {
  return queryRows<WaitingPod>(
    db,
    `select coalesce(old_address, old.address) as "oldAddress", pods.host || case when pods.port = 443 then '' else ':' || pods.port end as pod,
       due_at as "dueAt", attempts, last_status as "lastStatus", given_up_at is not null as "givenUp"
     from migration_announcements
     join account_migrations on account_migrations.id = migration_id
     left join people as old on old.id = old_person_id
     join pods on pods.id = migration_announcements.pod_id
     where delivered_at is null and new_person_id = coalesce(:personId::bigint, new_person_id)
     order by "oldAddress", pods.host, pods.port
     limit case when :personId::bigint is null then null else :max::integer end`,
    { personId, max: LISTED_PODS },
  )
}

/** Pods that a page shows; a command shows all. */
const LISTED_PODS = 200

/** A contact of the account with whom the old account had a mutual contact, and who has not confirmed it. */
export interface SilentContact {
  readonly personId: number
  readonly guid: string
  readonly address: string
}

export async function findSilentContacts(
  db: Knex,
  userId: number,
  claimedBefore: Date,
): Promise<readonly SilentContact[]> {
  return queryRows<SilentContact>(
    db,
    `select people.id as "personId", people.guid, people.address
     from claimed_followers as claim
     join contacts on contacts.user_id = claim.user_id and contacts.person_id = claim.person_id and contacts.receiving
     join people on people.id = claim.person_id
     where claim.user_id = ? and claim.created_at < ? and people.closed_at is null and people.pod_id is not null
     order by people.address limit ?`,
    [userId, claimedBefore, LISTED_PODS],
  )
}

/** Earlier moves of an identity: the old network IDs, and the messages that announced them, the first one first. */
export async function findArchivedMigrations(
  db: Knex,
  personId: number,
): Promise<readonly { readonly old_address: string; readonly envelope: string }[]> {
  return queryRows<{ readonly old_address: string; readonly envelope: string }>(
    db,
    `with recursive earlier as (
       select id, old_person_id, old_address, envelope from account_migrations where new_person_id = ?
       union
       select moves.id, moves.old_person_id, moves.old_address, moves.envelope
       from account_migrations as moves join earlier on moves.new_person_id = earlier.old_person_id
     )
     select coalesce(old_address, people.address) as old_address, envelope
     from earlier left join people on people.id = old_person_id
     where envelope is not null order by earlier.id`,
    [personId],
  )
}
