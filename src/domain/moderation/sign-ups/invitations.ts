import {
  findInvitation,
  type InvitationRecord,
  listInvitationRecords,
} from '../../../persistence/accounts/invitation-records.js'
import { inRequestTransaction } from '../../../persistence/database/transactions.js'
import { Invitation } from '../../../persistence/models/invitation.js'
import type { IdPage, ListPage } from '../../../persistence/sql/id-page.js'
import { DAY_MS } from '../../../protocol/durations.js'
import { isWithinLength } from '../../../protocol/values.js'
import type { ModerationServices, Services } from '../../../services/services.js'
import { insertInvitation } from '../../accounts/invitations.js'
import { findTextFault } from '../../posts/texts.js'
import { Refusal } from '../../refusals.js'
import { type Actor, requirePower } from '../actor.js'
import { MODERATION_LIMITS } from '../limits.js'
import { type ActionOptions, recordAction, requireReason } from '../record-action.js'

export interface InvitationInput {
  readonly uses?: number | undefined
  readonly until?: Date | undefined
  readonly note?: string | undefined
}

/** An invitation with its link, which is shown once. */
export interface NewInvitationRecord {
  readonly invitation: InvitationRecord
  readonly url: string
}

/** Creates an invitation for some sign-ups, with an audit entry. */
export async function inviteByStaff(
  services: ModerationServices,
  actor: Actor,
  input: InvitationInput,
  options: ActionOptions,
): Promise<NewInvitationRecord> {
  requirePower(actor, 'moderation')
  const reason = requireReason(options)
  const { uses, expiresAt, note } = readInvitation(services, input)
  return inRequestTransaction(services, async (transaction) => {
    const newInvitation = await insertInvitation(transaction, {
      uses,
      expiresAt,
      createdBy: actor.name,
      note,
    })
    await recordAction(services, transaction, actor, {
      kind: 'invitation',
      target: targetOf(newInvitation.id),
      reason,
      undo: { possible: false },
      after: { uses, until: expiresAt.toISOString() },
    })
    const invitation = await requireInvitation(transaction, newInvitation.id)
    return { invitation, url: `${services.config.url}/users/sign_up?invitation=${newInvitation.code}` }
  })
}

/** Checks the fields of a new invitation. */
export function readInvitation(
  { now }: Pick<Services, 'now'>,
  { uses = 1, until, note }: InvitationInput,
): Pick<Invitation, 'uses' | 'expiresAt' | 'note'> {
  requireUses(uses)
  return { uses, expiresAt: readEnd(now(), until), note: note === undefined ? null : readNote(note) }
}

/** Lists invitations with the accounts that came by them, newest first. */
export async function listInvitations(
  { db }: Pick<Services, 'db'>,
  actor: Actor,
  page: IdPage,
): Promise<ListPage<InvitationRecord>> {
  requirePower(actor, 'moderation')
  return listInvitationRecords(db, page)
}

export async function readInvitationRecord(
  { db }: Pick<Services, 'db'>,
  actor: Actor,
  id: number,
): Promise<InvitationRecord> {
  requirePower(actor, 'moderation')
  return requireInvitation(db, id)
}

export interface InvitationOutcome {
  readonly changed: boolean
  readonly invitation: InvitationRecord
}

/** Changes the number of uses, the end or the note of an invitation. */
export async function changeInvitation(
  services: ModerationServices,
  actor: Actor,
  { id, uses, until, note }: InvitationInput & { readonly id: number },
  options: ActionOptions,
): Promise<InvitationOutcome> {
  requirePower(actor, 'moderation')
  return inRequestTransaction(services, async (transaction) => {
    const before = await requireInvitation(transaction, id)
    const reason = requireReason(options)
    if (uses !== undefined) requireUses(uses, before.used)
    const changes = {
      uses: uses ?? before.uses,
      expiresAt: until === undefined ? before.expiresAt : readEnd(services.now(), until),
      note: note === undefined ? before.note : readNote(note),
    }
    if (isSame(before, changes)) return { changed: false, invitation: before }
    await Invitation.query(transaction).findById(id).patch(changes)
    const after = await requireInvitation(transaction, id)
    await recordAction(services, transaction, actor, {
      kind: 'invitation.change',
      target: targetOf(id),
      reason,
      undo: { possible: false },
      before: auditValues(before),
      after: auditValues(after),
    })
    return { changed: true, invitation: after }
  })
}

type InvitationSettings = Pick<InvitationRecord, 'uses' | 'expiresAt' | 'note'>

function isSame(one: InvitationSettings, other: InvitationSettings): boolean {
  return (
    one.uses === other.uses &&
    one.expiresAt.getTime() === other.expiresAt.getTime() &&
    (one.note ?? '') === (other.note ?? '')
  )
}

/** Recalls an invitation: its link works no more. False: it was recalled before. */
export async function recallInvitation(
  services: ModerationServices,
  actor: Actor,
  id: number,
  options: ActionOptions,
): Promise<InvitationOutcome> {
  requirePower(actor, 'moderation')
  return inRequestTransaction(services, async (transaction) => {
    const before = await requireInvitation(transaction, id)
    const reason = requireReason(options)
    if (before.recalledAt !== null) return { changed: false, invitation: before }
    await Invitation.query(transaction).findById(id).patch({ recalledAt: services.now() })
    await recordAction(services, transaction, actor, {
      kind: 'invitation.recall',
      target: targetOf(id),
      reason,
      undo: { possible: false },
    })
    return { changed: true, invitation: await requireInvitation(transaction, id) }
  })
}

async function requireInvitation(db: Services['db'], id: number): Promise<InvitationRecord> {
  const invitation = await findInvitation(db, id)
  if (invitation === undefined) throw new Refusal('invitation_not_found', 'There is no invitation with this number.')
  return invitation
}

function requireUses(uses: number, used = 0): void {
  if (uses >= Math.max(1, used) && uses <= MODERATION_LIMITS.invitationUses) return
  throw new Refusal(
    'uses_invalid',
    `An invitation is for ${Math.max(1, used)} to ${MODERATION_LIMITS.invitationUses} sign-ups.`,
  )
}

function readNote(text: string): string {
  const note = text.trim()
  if (!isWithinLength(note, MODERATION_LIMITS.reasonCharacters) || (note !== '' && findTextFault(note) !== undefined)) {
    throw new Refusal('note_invalid', `A note must have at most ${MODERATION_LIMITS.reasonCharacters} characters.`)
  }
  return note
}

/** Two weeks without another end, and at most a year. */
function readEnd(now: Date, until: Date | undefined): Date {
  const { invitationDays, maxInvitationDays } = MODERATION_LIMITS
  const end = until ?? new Date(now.getTime() + invitationDays * DAY_MS)
  if (end <= now || end.getTime() > now.getTime() + maxInvitationDays * DAY_MS) {
    throw new Refusal('until_invalid', 'An invitation must end within a year.')
  }
  return end
}

const targetOf = (id: number) => ({ type: 'invitation', guid: String(id), label: `invitation ${id}` })

const auditValues = ({ uses, expiresAt }: InvitationRecord) => ({ uses, until: expiresAt.toISOString() })
