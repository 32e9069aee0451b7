import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'
import type { Invitation } from '../models/invitation.js'
import { type IdPage, type ListPage, readIdPage } from '../sql/id-page.js'

/** An invitation with the usernames of the accounts that were made with it. */
export interface InvitationRecord
  extends Pick<Invitation, 'id' | 'note' | 'uses' | 'used' | 'createdBy' | 'expiresAt' | 'recalledAt' | 'createdAt'> {
  readonly accounts: readonly string[]
}

/** Lists invitations, newest first. */
export async function listInvitationRecords(db: Knex, page: IdPage): Promise<ListPage<InvitationRecord>> {
  return readIdPage<InvitationRecord>(selectRecords(db), page)
}

export async function findInvitation(db: Knex, id: number): Promise<InvitationRecord | undefined> {
  return selectRecords(db).where({ id }).first()
}

/** The invitations of a user, newest first. */
export async function listInvitationsByInviter(db: Knex, inviterId: number): Promise<readonly InvitationRecord[]> {
  return selectRecords(db).where({ inviterId }).orderBy('id', 'desc').limit(INVITATIONS_SHOWN)
}

const INVITATIONS_SHOWN = 100

export async function findInvitationByInviter(
  db: Knex,
  inviterId: number,
  id: number,
): Promise<InvitationRecord | undefined> {
  return selectRecords(db).where({ inviterId, id }).first()
}

/** Invitations of a user that can still be used. */
export async function countOpenInvitations(db: Knex, inviterId: number): Promise<number> {
  const rows = await db('invitations')
    .where({ inviterId, recalledAt: null })
    .whereRaw('used < uses and expires_at > now()')
    .select('id')
  return rows.length
}

function selectRecords(db: Knex): Knex.QueryBuilder {
  return db('invitations').select(
    ...(['id', 'note', 'uses', 'used', 'createdBy', 'expiresAt', 'recalledAt', 'createdAt'] as const),
    db.raw(`array(
      select username from users where users.invitation_id = invitations.id order by users.id
    ) as accounts`),
  )
}

/** Seconds until one of the last `limit` sign-ups is a day old; undefined: there were fewer in the last day. */
export async function secondsUntilSignUp(db: Knex, limit: number): Promise<number | undefined> {
  const [signUp] = await queryRows<{ readonly seconds: number }>(
    db,
    `select ceil(extract(epoch from signed_up_at + interval '1 day' - now()))::integer as seconds
     from users where signed_up_at > now() - interval '1 day'
     order by signed_up_at desc offset ? limit 1`,
    [limit - 1],
  )
  return signUp?.seconds
}
