import type { Knex } from 'knex'
import {
  countOpenInvitations,
  findInvitationByInviter,
  type InvitationRecord,
  listInvitationsByInviter,
} from '../../persistence/accounts/invitation-records.js'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { Invitation } from '../../persistence/models/invitation.js'
import { User } from '../../persistence/models/user.js'
import { DAY_MS } from '../../protocol/durations.js'
import type { Services } from '../../services/services.js'
import { type InvitationInput, type NewInvitationRecord, readInvitation } from '../moderation/sign-ups/invitations.js'
import { Refusal } from '../refusals.js'
import { insertInvitation } from './invitations.js'
import { ACCOUNT_LIMITS } from './limits.js'
import type { Viewer } from './viewers.js'

type InvitationDependencies = Pick<Services, 'config' | 'db' | 'requestContext' | 'now'>
type InvitingUser = Pick<Viewer, 'userId'>

/** Creates an invitation of the user. INVITATIONS_PER_USER of them may be open; moderators and admins have no limit. */
export async function createOwnInvitation(
  services: InvitationDependencies,
  { userId }: InvitingUser,
  input: InvitationInput,
): Promise<NewInvitationRecord> {
  const invitation = readInvitation(services, input)
  return inRequestTransaction(services, async (transaction) => {
    const user = await User.query(transaction)
      .findById(userId)
      .withGraphFetched('person')
      .forNoKeyUpdate()
      .throwIfNotFound()
    await requireMayInvite(services, transaction, user)
    const newInvitation = await insertInvitation(transaction, {
      ...invitation,
      createdBy: user.username,
      inviterId: userId,
    })
    const record = await requireOwn(transaction, userId, newInvitation.id)
    return { invitation: record, url: `${services.config.url}/users/sign_up?invitation=${newInvitation.code}` }
  })
}

/** The invitations of a user, newest first, with the accounts that came by them. */
export async function listOwnInvitations(
  { db }: Pick<Services, 'db'>,
  { userId }: InvitingUser,
): Promise<readonly InvitationRecord[]> {
  return listInvitationsByInviter(db, userId)
}

/** Recalls an invitation: its link works no more. */
export async function recallOwnInvitation(
  services: InvitationDependencies,
  { userId }: InvitingUser,
  id: number,
): Promise<void> {
  await inRequestTransaction(services, async (transaction) => {
    const { recalledAt } = await requireOwn(transaction, userId, id)
    if (recalledAt === null) await Invitation.query(transaction).findById(id).patch({ recalledAt: services.now() })
  })
}

/** Why a user cannot create an invitation now; undefined: they can. */
export async function findInvitingRefusal(
  services: Pick<Services, 'config' | 'db' | 'now'>,
  { userId }: InvitingUser,
): Promise<Refusal | undefined> {
  const user = await User.query(services.db).findById(userId).withGraphFetched('person').throwIfNotFound()
  try {
    await requireMayInvite(services, services.db, user)
    return undefined
  } catch (error) {
    if (error instanceof Refusal) return error
    throw error
  }
}

async function requireMayInvite(services: Pick<Services, 'config' | 'now'>, db: Knex, user: User): Promise<void> {
  if (services.config.registrations === 'closed') {
    throw new Refusal('sign_up_closed', 'This pod does not accept new accounts at the moment.')
  }
  if (user.person?.restriction != null) {
    throw new Refusal('invitations_not_allowed', 'Your account cannot make invitations at the moment.')
  }
  if (user.role !== null) return
  const { invitationsPerUser: max } = services.config
  if (max === 0)
    throw new Refusal('invitations_not_allowed', 'Only moderators and admins can invite people.', {
      details: { explanation: 'invitations_of_staff' },
    })
  const { invitationsAfterDays: days } = ACCOUNT_LIMITS
  const since = new Date(services.now().getTime() - days * DAY_MS)
  if (user.createdAt > since) {
    throw new Refusal('invitations_not_allowed', `You can invite people ${days} days after your sign-up.`, {
      details: { explanation: 'invitations_too_early' },
    })
  }
  if ((await countOpenInvitations(db, user.id)) >= max) {
    throw new Refusal(
      'too_many_invitations',
      `You have ${max} open invitations. Recall one, or wait until one is used.`,
    )
  }
}

async function requireOwn(db: Knex, userId: number, id: number): Promise<InvitationRecord> {
  const invitation = await findInvitationByInviter(db, userId, id)
  if (invitation === undefined) throw new Refusal('invitation_not_found', 'You have no invitation with this number.')
  return invitation
}
