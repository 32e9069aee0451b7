import type { Knex } from 'knex'
import { inRequestTransaction } from '../../persistence/database/transactions.js'
import { Person } from '../../persistence/models/person.js'
import { User } from '../../persistence/models/user.js'
import { findActionsInForce, isCoveredBy } from '../../persistence/moderation/actions.js'
import { countRelations, type PersonRelations } from '../../persistence/moderation/person-relations.js'
import { type RestrictionKind, restrictPeople } from '../../persistence/moderation/restrictions.js'
import type { ModerationServices, Services } from '../../services/services.js'
import { requireNotPodmin } from '../accounts/accounts.js'
import { Refusal } from '../refusals.js'
import { type Actor, requireActionOn, requirePower } from './actor.js'
import { personNotFound } from './find-local-user.js'
import { followUpRestrictions } from './follow-up-restrictions.js'
import {
  type ActionOptions,
  type ActionOutcome,
  auditAction,
  insertAction,
  requireFutureEnd,
  requireReason,
} from './record-action.js'

export interface RestrictOptions extends ActionOptions {
  /** The address, for a block of a person with relations to this pod. */
  readonly confirm?: string | undefined
}

/** Keeps the posts of a person away from everyone who does not follow them. Threads, messages and deliveries stay as they are. */
export function silencePerson(
  services: ModerationServices,
  actor: Actor,
  guid: string,
  options: ActionOptions,
): Promise<ActionOutcome> {
  return restrictPerson(services, actor, { guid, kind: 'silence' }, options)
}

/** Hides everything by a remote person, drops new messages from them, and makes their contacts inactive. */
export function blockOnPod(
  services: ModerationServices,
  actor: Actor,
  guid: string,
  options: RestrictOptions,
): Promise<ActionOutcome> {
  return restrictPerson(services, actor, { guid, kind: 'block' }, options)
}

/** Counts what a block of the person would end or hide. */
export async function previewBlock(
  services: Pick<Services, 'db'>,
  actor: Actor,
  guid: string,
): Promise<PersonRelations> {
  requirePower(actor, 'moderation')
  const { id } = await getAnyPerson(services.db, guid)
  return countRelations(services.db, [id])
}

/** Finds a local or remote person with an open account, restricted or not. */
async function getAnyPerson(db: Knex, guid: string): Promise<Person> {
  const person = await Person.query(db).findOne({ guid }).withGraphFetched('profile')
  if (person === undefined || person.closedAt !== null) {
    throw personNotFound()
  }
  return person
}

async function restrictPerson(
  services: ModerationServices,
  actor: Actor,
  { guid, kind }: { readonly guid: string; readonly kind: RestrictionKind },
  { confirm, ...options }: RestrictOptions,
): Promise<ActionOutcome> {
  requirePower(actor, 'moderation')
  return inRequestTransaction(services, async (transaction) => {
    const person = await getAnyPerson(transaction, guid)
    await Person.lock(transaction, person.id)
    const reason = requireReason(options)
    requireFutureEnd(services, options.until)
    const user = await User.query(transaction).findOne({ personId: person.id })
    if (kind === 'block' && person.podId === null) {
      throw new Refusal('not_remote', 'The person has an account on this pod. Silence, lock or close it instead.')
    }
    if (user !== undefined) {
      requireActionOn(actor, user)
      requireNotPodmin(services, user)
    }
    const actionsInForce = await findActionsInForce(transaction, { targetType: 'person', targetGuid: guid }, [kind])
    if (isCoveredBy(actionsInForce, options.until)) return { changed: false }
    if (kind === 'block' && confirm !== person.address) await requireNoRelations(transaction, person)
    const label = user?.username ?? person.address
    const newAction = await insertAction(services, transaction, actor, {
      kind,
      target: { type: 'person', guid, label },
      reason,
      caseId: options.caseId,
      until: options.until,
      undo: { possible: true, ...(kind === 'block' && { loses: 'Messages that were dropped in the meantime.' }) },
      before: { restriction: person.restriction },
      after: { restriction: person.restriction === 'block' ? 'block' : kind },
      details: { userId: user?.id ?? null },
    })
    const change = await restrictPeople(transaction, { source: 'action', id: newAction.id }, kind, [person.id])
    await followUpRestrictions(services, transaction, change)
    return { changed: true, action: await auditAction(services, transaction, newAction) }
  })
}

async function requireNoRelations(transaction: Knex.Transaction, { id, address }: Person): Promise<void> {
  const preview = await countRelations(transaction, [id])
  if (preview.local_followers === 0 && preview.contacts === 0) return
  throw new Refusal('confirmation_needed', `Set confirm to ${address} to block a person with contacts on this pod.`, {
    details: { preview },
  })
}
