import type { Knex } from 'knex'
import {
  countOpenInvitations,
  findInvitationByInviter,
  type InvitationRecord,
  listInvitationsByInviter,
} from '../../persistence/accounts/invitation-records.js'
import { inTransaction } from '../../persistence/database/transactions.js'
import { Invitation } from '../../persistence/models/invitation.js'
import { User } from '../../persistence/models/user.js'
import type { Pod } from '../../pod/pod.js'
import { type InvitationInput, type NewInvitationRecord, readInvitation } from '../moderation/sign-ups/invitations.js'
import { Refusal } from '../refusals.js'
import { insertInvitation } from './invitations.js'
import { ACCOUNT_LIMITS } from './limits.js'
import type { Viewer } from './viewers.js'

type InvitationPod = Pick<Pod, 'db' | 'now' | 'config' | 'requestContext'>
type InvitingUser = Pick<Viewer, 'userId'>

const DAY_MS = 86_400_000

/** Makes an invitation of a member. INVITATIONS_PER_USER of them may be open; moderators and admins have no limit. */
export async function inviteByMember(
  pod: InvitationPod,
  { userId }: InvitingUser,
  input: InvitationInput,
): Promise<NewInvitationRecord> {
  const invitation = readInvitation(pod, input)
  return inTransaction(pod, async (transaction) => {
    const user = await User.query(transaction)
      .findById(userId)
      .withGraphFetched('person')
      .forNoKeyUpdate()
      .throwIfNotFound()
    await requireMayInvite(pod, transaction, user)
    const invitationId = await insertInvitation(transaction, {
      ...invitation,
      createdBy: user.username,
      inviterId: userId,
    })
    const record = await requireOwn(transaction, userId, invitationId.id)
    return { invitation: record, url: `${pod.config.url}/users/sign_up?invitation=${invitationId.code}` }
  })
}

/** The invitations of a user, newest first, with the accounts that came by them. */
export async function listOwnInvitations(
  { db }: Pick<Pod, 'db'>,
  { userId }: InvitingUser,
): Promise<readonly InvitationRecord[]> {
  return listInvitationsByInviter(db, userId)
}

/** Recalls an invitation: its link works no more. */
export async function recallOwnInvitation(pod: InvitationPod, { userId }: InvitingUser, id: number): Promise<void> {
  await inTransaction(pod, async (transaction) => {
    const { recalledAt } = await requireOwn(transaction, userId, id)
    if (recalledAt === null) await Invitation.query(transaction).findById(id).patch({ recalledAt: pod.now() })
  })
}

/** Why a user cannot make an invitation now; undefined: they can. */
export async function findInvitingRefusal(
  pod: Pick<Pod, 'db' | 'now' | 'config'>,
  { userId }: InvitingUser,
): Promise<Refusal | undefined> {
  const user = await User.query(pod.db).findById(userId).withGraphFetched('person').throwIfNotFound()
  try {
    await requireMayInvite(pod, pod.db, user)
    return undefined
  } catch (error) {
    if (error instanceof Refusal) return error
    throw error
  }
}

async function requireMayInvite(pod: Pick<Pod, 'now' | 'config'>, db: Knex, user: User): Promise<void> {
  if (pod.config.registrations === 'closed') {
    throw new Refusal('sign_up_closed', 'This pod does not accept new accounts at the moment.')
  }
  if (user.person?.restriction != null) {
    throw new Refusal('invitations_not_allowed', 'Your account cannot make invitations at the moment.')
  }
  if (user.role !== null) return
  const { invitationsPerUser: most } = pod.config
  if (most === 0)
    throw new Refusal('invitations_not_allowed', 'Only moderators of this pod make invitations.', {
      details: { explanation: 'invitations_of_staff' },
    })
  const { invitationsAfterDays: days } = ACCOUNT_LIMITS
  const since = new Date(pod.now().getTime() - days * DAY_MS)
  if (user.createdAt > since) {
    throw new Refusal('invitations_not_allowed', `You can invite people ${days} days after your sign-up.`, {
      details: { explanation: 'invitations_too_early' },
    })
  }
  if ((await countOpenInvitations(db, user.id)) >= most) {
    throw new Refusal('too_many_invitations', `You have ${most} open invitations. Recall one, or wait for its use.`)
  }
}

async function requireOwn(db: Knex, userId: number, id: number): Promise<InvitationRecord> {
  const invitation = await findInvitationByInviter(db, userId, id)
  if (invitation === undefined) throw new Refusal('invitation_not_found', 'You have no invitation with this number.')
  return invitation
}
