import type { Knex } from 'knex'
import { queryRow } from '../database/database.js'
import { escapeLike } from '../sql/escape-like.js'
import { type IdPage, type ListPage, readIdPage } from '../sql/id-page.js'
import type { AuditActor } from './audit-log.js'
import { REVERSED_HOST_SQL } from './pod-preview.js'
import type { RestrictionKind } from './restrictions.js'

export const PERSON_STATES = ['open', 'silenced', 'blocked', 'locked', 'closing', 'closed'] as const
export type PersonState = (typeof PERSON_STATES)[number]

/** A person as moderators see them. */
export interface PersonRecord {
  readonly id: number
  readonly guid: string
  readonly address: string
  readonly name: string
  readonly avatarUrl: string | null
  readonly isLocal: boolean
  readonly state: PersonState
  readonly role: string | null
  readonly firstSeenAt: Date
  readonly reportsMuted: boolean | null
  readonly restrictions: readonly {
    readonly actionId: number | null
    readonly kind: RestrictionKind | 'lock' | 'close'
    readonly by: 'person' | 'pod_rule'
    readonly until: string | null
    /** The power that the undo of the action needs. */
    readonly power: 'moderation' | 'administration' | null
  }[]
}

/** Fields of the record of one person only, because reading them is recorded in the audit log. */
export interface PersonContact {
  readonly email: string | null
  readonly emailConfirmedAt: Date | null
  /** The addresses; after 30 days their networks. */
  readonly signUpIp: string | null
  readonly signedUpAt: Date | null
  readonly signInIp: string | null
  readonly signInAt: Date | null
  /** The invitation by which the account was made. */
  readonly invitationId: number | null
  readonly lastActiveAt: Date | null
  /** Local users who follow the person. */
  readonly followers: number
}

export interface PersonFilter {
  /** Part of the name, or the beginning of the address. */
  readonly text?: string | undefined
  readonly isLocal?: boolean | undefined
  readonly state?: PersonState | undefined
  readonly role?: 'moderator' | 'admin' | undefined
  /** The host of the address. */
  readonly domain?: string | undefined
  readonly firstSeenAfter?: Date | undefined
  /** The complete address of a local person, in any case. */
  readonly email?: string | undefined
  /** An address or a network from which an account was made or used. */
  readonly ip?: string | undefined
  /** The number of an invitation, or the guid, address or user name of the person who made it. */
  readonly invitedBy?: string | undefined
}

/** Ids of the person with this guid, address or, of this pod, user name: for filters of lists. Parameter `name`. */
export const PEOPLE_NAMED_SQL = `
  select id from people where guid = :name or address = lower(:name)
  union all select person_id from users where username = lower(:name)`

export interface PersonNote {
  readonly actor: AuditActor
  readonly text: string
  readonly createdAt: Date
}

export async function insertPersonNote(
  transaction: Knex.Transaction,
  { actor, ...note }: PersonNote & { readonly personId: number },
): Promise<void> {
  await transaction('person_notes').insert({ ...note, actor: JSON.stringify(actor) })
}

/** Notes of moderators about a person, the latest first, and the number of warnings. */
export async function readPersonHistory(
  db: Knex,
  { id, guid }: Pick<PersonRecord, 'id' | 'guid'>,
): Promise<{ readonly notes: readonly PersonNote[]; readonly warnings: number }> {
  const notes = await db('person_notes')
    .where({ personId: id })
    .orderBy('id', 'desc')
    .limit(NOTES_SHOWN)
    .select('actor', 'text', 'createdAt')
  const [{ count = 0 } = {}] = await db('moderation_actions')
    .where({ targetType: 'person', targetGuid: guid, kind: 'warn' })
    .count<{ count: number }[]>('* as count')
  return { notes, warnings: Number(count) }
}

const NOTES_SHOWN = 50

/** Ids of the invitation with this number, and of all that this person has made. Staff and users are stored as `created_by`. */
const INVITATIONS_OF_SQL = `
  select id from invitations where cast(id as text) = :name
  union all select invitations.id from invitations join users on users.username = invitations.created_by
    where users.person_id in (${PEOPLE_NAMED_SQL})`

/** Lists people, the latest first. */
export async function listPersonRecords(
  db: Knex,
  { text, isLocal, state, role, domain, firstSeenAfter, email, ip, invitedBy }: PersonFilter,
  page: IdPage,
): Promise<ListPage<PersonRecord>> {
  const query = selectRecords(db)
  if (text !== undefined && text !== '') {
    query.whereRaw('(people.shown_name like lower(?) or people.address like lower(?))', [
      `%${escapeLike(text)}%`,
      `${escapeLike(text)}%`,
    ])
  }
  if (isLocal !== undefined) query.whereRaw(`people.pod_id is ${isLocal ? '' : 'not '}null`)
  if (state !== undefined) query.whereRaw(`${STATE_SQL} = ? and ${STATE_CANDIDATES_SQL[state] ?? 'true'}`, [state])
  if (role !== undefined) query.where('users.role', role)
  if (domain !== undefined) query.whereRaw(OF_DOMAIN_SQL, { domain })
  if (firstSeenAfter !== undefined) query.where('people.createdAt', '>', firstSeenAfter)
  if (email !== undefined) query.whereRaw('lower(users.email) = lower(?)', [email])
  if (ip !== undefined) {
    query.whereRaw('(users.sign_up_ip && cast(:ip as inet) or users.sign_in_ip && cast(:ip as inet))', { ip })
  }
  if (invitedBy !== undefined) query.whereRaw(`users.invitation_id in (${INVITATIONS_OF_SQL})`, { name: invitedBy })
  return readIdPage(query, page, 'people.id')
}

export async function findPersonRecord(db: Knex, guid: string): Promise<PersonRecord | undefined> {
  return selectRecords(db).where('people.guid', guid).first()
}

export async function readPersonContact(db: Knex, personId: number): Promise<PersonContact> {
  return queryRow<PersonContact>(
    db,
    `select coalesce(users.email, users.unconfirmed_email) as email, users.email_confirmed_at as "emailConfirmedAt",
       users.sign_up_ip as "signUpIp", users.signed_up_at as "signedUpAt",
       users.sign_in_ip as "signInIp", users.sign_in_at as "signInAt", users.invitation_id as "invitationId",
       greatest(users.sign_in_at, (
         select max(last_used_at) from browser_sessions where browser_sessions.user_id = users.id
       )) as "lastActiveAt",
       (select count(*) from contacts where contacts.person_id = people.id and receiving)::integer as followers
     from people left join users on users.person_id = people.id
     where people.id = ?`,
    [personId],
  )
}

/** Shortens the addresses that are older than 30 days to their networks. */
export async function shortenOldAddresses(db: Knex): Promise<void> {
  for (const [ip, at] of [
    ['sign_up_ip', 'signed_up_at'],
    ['sign_in_ip', 'sign_in_at'],
  ]) {
    const network = `network(set_masklen(${ip}, case family(${ip}) when 4 then 24 else 48 end))`
    await db.raw(`update users set ${ip} = ${network} where ${at} < now() - interval '30 days' and ${ip} <> ${network}`)
  }
}

const STATE_SQL = `case
  when people.closed_at is not null then 'closed'
  when users.close_at is not null then 'closing'
  when users.locked_at is not null then 'locked'
  when people.restriction = 'block' then 'blocked'
  when people.restriction = 'silence' then 'silenced'
  else 'open'
end`

/** Conditions that everybody in the state meets, and by which an index or the local accounts are read instead of all people. */
const STATE_CANDIDATES_SQL: Readonly<Partial<Record<PersonState, string>>> = {
  closed: 'people.closed_at is not null',
  closing: 'people.id in (select person_id from users where close_at is not null)',
  locked: 'people.id in (select person_id from users where locked_at is not null)',
  blocked: `people.restriction is not null`,
  silenced: `people.restriction is not null`,
}

/** The people of other pods are found by the index `people_reversed_host`, those of this pod by `people_local`. */
const OF_DOMAIN_SQL = `split_part(people.address, '@', 2) = :domain and (
  people.pod_id is null
  or people.pod_id is not null and ${REVERSED_HOST_SQL} = reverse(regexp_replace(:domain, ':[0-9]+$', ''))
)`

/** Restrictions by actions and by rules about the pod, and the lock and the closing of the account. A cleaning locks several accounts. */
const RESTRICTIONS_SQL = `(
  select coalesce(json_agg(source order by source."actionId"), '[]')
  from (
    select
      case when source = 'action' then source_id end as "actionId", person_restrictions.kind,
      case when source = 'action' then 'person' else source end as "by", moderation_actions.until,
      moderation_actions.power
    from person_restrictions
    left join moderation_actions on source = 'action' and moderation_actions.id = source_id
    where person_id = people.id
    union all
    select id, kind, 'person', case kind when 'close' then users.close_at else until end, power from moderation_actions
    where target_type = 'person' and target_guid = people.guid and kind in ('lock', 'close') and can_be_undone and undone_by_id is null
    union all
    select id, 'lock', 'person', until, power from moderation_actions
    where users.locked_at is not null and kind = 'cluster.clean' and can_be_undone and undone_by_id is null
      and details->'lockedIds' @> to_jsonb(users.id)
  ) as source
)`

function selectRecords(db: Knex): Knex.QueryBuilder {
  return db('people')
    .leftJoin('users', 'users.personId', 'people.id')
    .select(
      'people.id',
      'people.guid',
      'people.address',
      'people.name',
      'people.avatarUrl',
      db.raw('people.pod_id is null as "isLocal"'),
      db.raw(`${STATE_SQL} as state`),
      'users.role',
      'users.reportsMuted',
      'people.createdAt as firstSeenAt',
      db.raw(`${RESTRICTIONS_SQL} as restrictions`),
    )
}
