import type { Knex } from 'knex'
import { inTransaction } from '../../persistence/database/transactions.js'
import { Person } from '../../persistence/models/person.js'
import { User } from '../../persistence/models/user.js'
import { findActionInForce } from '../../persistence/moderation/actions.js'
import { countRelations, type PersonRelations } from '../../persistence/moderation/person-relations.js'
import { type RestrictionKind, restrictPeople } from '../../persistence/moderation/restrictions.js'
import type { Pod } from '../../pod/pod.js'
import { requireNotPodmin } from '../accounts/accounts.js'
import { Refusal } from '../refusals.js'
import { type Actor, requireActionOn, requirePower } from './actor.js'
import { personNotFound } from './find-local-user.js'
import { followUpRestrictions } from './follow-up-restrictions.js'
import { type ActionOptions, type ActionOutcome, recordAction, requireReason } from './record-action.js'

type RestrictPod = Pick<Pod, 'db' | 'jobs' | 'now' | 'log' | 'requestContext' | 'config'>

export interface RestrictOptions extends ActionOptions {
  /** The address, for a block of a person with relations to this pod. */
  readonly confirm?: string | undefined
}

/** Keeps the posts of a person away from everyone who does not follow them. Threads, messages and deliveries stay as they are. */
export function silencePerson(
  pod: RestrictPod,
  actor: Actor,
  guid: string,
  options: ActionOptions,
): Promise<ActionOutcome> {
  return restrictPerson(pod, actor, guid, 'silence', options)
}

/** Hides everything by a remote person, drops new messages from them, and makes their contacts inactive. */
export function blockOnPod(
  pod: RestrictPod,
  actor: Actor,
  guid: string,
  options: RestrictOptions,
): Promise<ActionOutcome> {
  return restrictPerson(pod, actor, guid, 'block', options)
}

/** Counts what a block of the person would end or hide. */
export async function previewBlock(pod: Pick<Pod, 'db'>, actor: Actor, guid: string): Promise<PersonRelations> {
  requirePower(actor, 'moderation')
  const { id } = await findAnyPerson(pod.db, guid)
  return countRelations(pod.db, [id])
}

/** Finds a local or remote person with an open account, restricted or not. */
async function findAnyPerson(db: Knex, guid: string): Promise<Person> {
  const person = await Person.query(db).findOne({ guid }).withGraphFetched('profile')
  if (person === undefined || person.closedAt !== null) {
    throw personNotFound()
  }
  return person
}

async function restrictPerson(
  pod: RestrictPod,
  actor: Actor,
  guid: string,
  kind: RestrictionKind,
  { confirm, ...options }: RestrictOptions,
): Promise<ActionOutcome> {
  requirePower(actor, 'moderation')
  return inTransaction(pod, async (transaction) => {
    const person = await findAnyPerson(transaction, guid)
    await Person.lock(transaction, person.id)
    const reason = requireReason(options)
    const user = await User.query(transaction).findOne({ personId: person.id })
    if (kind === 'block' && person.podId === null) {
      throw new Refusal('not_remote', 'The person has an account on this pod. Silence, lock or close it instead.')
    }
    if (user !== undefined) {
      requireActionOn(actor, user)
      requireNotPodmin(pod, user)
    }
    const inForce = await findActionInForce(transaction, { kind, targetType: 'person', targetGuid: guid })
    if (inForce !== undefined) return { changed: false }
    if (kind === 'block' && confirm !== person.address) await requireNoRelations(transaction, person)
    const label = user?.username ?? person.address
    const action = await recordAction(pod, transaction, actor, {
      kind,
      target: { type: 'person', guid, label },
      reason,
      caseId: options.caseId,
      until: options.until,
      undo: { possible: true, ...(kind === 'block' && { loses: 'Messages that were dropped meanwhile.' }) },
      before: { restriction: person.restriction },
      after: { restriction: person.restriction === 'block' ? 'block' : kind },
      details: { userId: user?.id ?? null },
      effect: async (id) => {
        const change = await restrictPeople(transaction, { source: 'action', id }, kind, [person.id])
        await followUpRestrictions(pod, transaction, change)
      },
    })
    return { changed: true, action }
  })
}

async function requireNoRelations(transaction: Knex.Transaction, { id, address }: Person): Promise<void> {
  const preview = await countRelations(transaction, [id])
  if (preview.local_followers === 0 && preview.contacts === 0) return
  throw new Refusal('confirmation_needed', `Set confirm to ${address} to block a person with contacts on this pod.`, {
    details: { preview },
  })
}
