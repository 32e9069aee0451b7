import type { Knex } from 'knex'
import type { Person } from '../../../persistence/models/person.js'
import type { User } from '../../../persistence/models/user.js'
import { type AuditValues, appendAuditEntry } from '../../../persistence/moderation/audit-log.js'
import type { Services } from '../../../services/services.js'
import { COMMAND_ACTOR } from '../../moderation/actor.js'
import { auditContext } from '../../moderation/record-action.js'
import { changeOpenUser } from '../accounts.js'

export type OperatorDependencies = Pick<Services, 'config' | 'db' | 'requestContext' | 'jobs' | 'locales' | 'now'>

export type UserWithPerson = User & { readonly person: Person }

/** Runs a change of an open account by its operator, and records it in the audit log with `after`. */
export async function changeAsOperator<Result>(
  services: OperatorDependencies,
  username: string,
  action: string,
  change: (
    transaction: Knex.Transaction,
    user: UserWithPerson,
  ) => Promise<{ readonly result: Result; readonly after: AuditValues }>,
): Promise<Result> {
  return changeOpenUser(services, username, async (transaction, user) => {
    if (user.person === undefined) throw new Error(`The person of user ${user.id} was not read with it.`)
    const { result, after } = await change(transaction, user as UserWithPerson)
    await recordChange(services, transaction, user, { action, after })
    return result
  })
}

/** Records a change of an account by its operator in the audit log. */
export async function recordChange(
  { now }: Pick<Services, 'now'>,
  transaction: Knex.Transaction,
  { username, person }: User,
  { action, after }: { readonly action: string; readonly after: AuditValues },
): Promise<void> {
  const target = { type: 'person', guid: person?.guid ?? null, label: username }
  await appendAuditEntry(transaction, { action, target, after, ...auditContext(COMMAND_ACTOR) }, now())
}
