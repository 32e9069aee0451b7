import type { Knex } from 'knex'
import { type IdPage, type ListPage, readIdPage } from '../sql/id-page.js'

export interface UserNotice {
  readonly id: number
  readonly kind: 'warning' | 'content_hidden' | 'content_removed' | 'contacts_lost'
  /** The text of a warning, or the host of lost contacts. */
  readonly text: string
  readonly targetType: string | null
  readonly targetGuid: string | null
  readonly createdAt: Date
  readonly confirmedAt: Date | null
  readonly lostContacts: number
}

export interface NewUserNotice extends Pick<UserNotice, 'kind' | 'text' | 'targetType' | 'targetGuid' | 'createdAt'> {
  readonly userId: number
  readonly actionId: number
}

/** A contact that a rule for a pod has made inactive. */
export interface LostContact {
  readonly address: string
  readonly name: string
  readonly sharing: boolean
  readonly receiving: boolean
}

export async function insertNotice(transaction: Knex.Transaction, notice: NewUserNotice): Promise<void> {
  await transaction('user_notices').insert(notice)
}

/** Lists the notices of a user, newest first. */
export async function listNotices(db: Knex, userId: number, page: IdPage): Promise<ListPage<UserNotice>> {
  const count = '(select count(*)::integer from lost_contacts where notice_id = user_notices.id) as "lostContacts"'
  return readIdPage(
    db('user_notices').where({ userId }).select('user_notices.*', db.raw(count)),
    page,
    'user_notices.id',
  )
}

export async function hasUnconfirmedNotice(db: Knex, address: string): Promise<boolean> {
  const notice = await db('user_notices')
    .join('users', 'users.id', 'user_notices.userId')
    .join('people', 'people.id', 'users.personId')
    .where({ 'people.address': address })
    .whereNull('confirmedAt')
    .first('user_notices.id')
  return notice !== undefined
}

/** Marks notices up to an id, which the user has seen, as confirmed. */
export async function confirmNotices(db: Knex, userId: number, upTo: number, at: Date): Promise<void> {
  await db('user_notices')
    .where({ userId })
    .where('id', '<=', upTo)
    .whereNull('confirmedAt')
    .update({ confirmedAt: at })
}

/** Reads the lost contacts of a user by address: a user has a few thousand contacts at most. */
export async function listLostContacts(db: Knex, userId: number): Promise<readonly LostContact[]> {
  return db('lost_contacts')
    .join('user_notices', 'user_notices.id', 'lost_contacts.noticeId')
    .where({ userId })
    .orderBy(['address', 'noticeId'])
    .distinctOn('address')
    .select('address', 'name', 'sharing', 'receiving')
}

/** Makes the contacts of people inactive. If a rule for their pod does it, their users get a notice for each host. */
export async function deactivateContacts(
  transaction: Knex.Transaction,
  personIds: readonly number[],
  { shouldNotifyUsers }: { readonly shouldNotifyUsers: boolean },
): Promise<void> {
  await transaction.raw(DEACTIVATED_CONTACTS_SQL, { personIds: [...personIds], shouldNotifyUsers })
}

/** The contacts of these people are active again: unconfirmed notices about them are deleted. */
export async function deleteLostContacts(transaction: Knex.Transaction, personIds: readonly number[]): Promise<void> {
  for (const statement of deleteLost) await transaction.raw(statement, { personIds: [...personIds] })
}

const DEACTIVATED_CONTACTS_SQL = `
  with lost as (
    update contacts set
      inactive_sharing = sharing, inactive_receiving = receiving, sharing = false, receiving = false
    where person_id = any(:personIds) and inactive_sharing is null
    returning user_id, person_id, inactive_sharing as sharing, inactive_receiving as receiving
  ), named as (
    select lost.user_id, people.address, people.name, split_part(people.address, '@', 2) as host, lost.sharing, lost.receiving
    from lost join people on people.id = lost.person_id
    where :shouldNotifyUsers
  ), noticed as (
    insert into user_notices (user_id, kind, text)
    select distinct user_id, 'contacts_lost', host from named order by 1, 3
    on conflict (user_id, text) where kind = 'contacts_lost' and confirmed_at is null do update set text = excluded.text
    returning id, user_id, text as host
  )
  insert into lost_contacts (notice_id, address, name, sharing, receiving)
  select noticed.id, named.address, named.name, named.sharing, named.receiving from named join noticed using (user_id, host)
  on conflict do nothing`

const deleteLost = [
  `delete from lost_contacts using people, user_notices
   where people.id = any(:personIds) and lost_contacts.address = people.address
     and user_notices.id = lost_contacts.notice_id and user_notices.confirmed_at is null`,
  `delete from user_notices using people
   where people.id = any(:personIds) and kind = 'contacts_lost' and confirmed_at is null
     and text = split_part(people.address, '@', 2)
     and not exists (select from lost_contacts where notice_id = user_notices.id)`,
]
