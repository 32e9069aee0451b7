import type { Knex } from 'knex'
import { type BrowserSession, listBrowserSessions } from '../../persistence/accounts/browser-sessions.js'
import { deleteSessions } from '../../persistence/accounts/oidc-records.js'
import { User } from '../../persistence/models/user.js'
import { type AuditValues, appendAuditEntry } from '../../persistence/moderation/audit-log.js'
import type { Pod } from '../../pod/pod.js'
import { enqueueAccountMail } from '../mail/enqueue-mail.js'
import { COMMAND_ACTOR } from '../moderation/actor.js'
import { auditContext } from '../moderation/record-action.js'
import { Refusal } from '../refusals.js'
import { changeOpenUser } from './accounts.js'
import { type Factors, findFactors, removeFactors } from './factors/second-factor.js'
import { endApplications } from './sessions.js'

/** Changes of an account by its operator, each with an entry in the audit log. */
type OperatorPod = Pick<Pod, 'db' | 'now' | 'config' | 'jobs' | 'claimedKey'>

async function findUserId({ db }: Pick<Pod, 'db'>, username: string): Promise<number> {
  const user = await User.byUsername(db, username)
  if (user === undefined) throw new Refusal('user_missing', `There is no local account named ${username}.`)
  return user.id
}

export async function listSessionsOf(pod: Pick<Pod, 'db'>, username: string): Promise<readonly BrowserSession[]> {
  return listBrowserSessions(pod.db, await findUserId(pod, username))
}

/** Ends the sessions of a user in all browsers, and the access of applications if wanted. */
export async function endSessionsOf(
  pod: OperatorPod,
  username: string,
  { applications }: { readonly applications: boolean },
): Promise<void> {
  await changeAsOperator(pod, username, 'user.sessions', async (transaction, { id, person }) => {
    await deleteSessions(transaction, person.address)
    if (applications) await endApplications(transaction, id)
    return { applications }
  })
}

export async function findFactorsOf(pod: Pick<Pod, 'db'>, username: string): Promise<Factors> {
  return findFactors(pod.db, await findUserId(pod, username))
}

/** Removes all second factors of a user who has lost them, and ends the sessions in browsers. */
export async function removeFactorsOf(pod: OperatorPod, username: string): Promise<void> {
  await changeAsOperator(pod, username, 'user.two_factor', async (transaction, { id, person }) => {
    const { totp, passkeys } = await findFactors(transaction, id)
    await removeFactors(transaction, id)
    await enqueueAccountMail(pod, transaction, 'second_factor_off', id)
    await deleteSessions(transaction, person.address)
    return { totp, passkeys }
  })
}

/** Runs a change of an open account and records it, with what it returns. */
async function changeAsOperator(
  pod: OperatorPod,
  username: string,
  action: string,
  change: (
    transaction: Knex.Transaction,
    user: { readonly id: number; readonly person: { readonly guid: string; readonly address: string } },
  ) => Promise<AuditValues>,
): Promise<void> {
  await changeOpenUser(pod, username, async (transaction, { id, person, username: label }) => {
    if (person === undefined) throw new Error(`The person of user ${id} was not read with it.`)
    const after = await change(transaction, { id, person })
    const target = { type: 'person', guid: person.guid, label }
    await appendAuditEntry(transaction, { action, target, after, ...auditContext(COMMAND_ACTOR) }, pod.now())
  })
}
