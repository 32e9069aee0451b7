import { listChecks, type StoredCheck } from '../../persistence/operations/checks.js'
import type { Services } from '../../services/services.js'
import { type Actor, requirePower } from '../moderation/actor.js'

/** The last results of the checks of this pod from outside: what needs an action first. */
export async function readChecks({ db }: Pick<Services, 'db'>, actor: Actor): Promise<readonly StoredCheck[]> {
  requirePower(actor, 'administration')
  return listChecks(db)
}
