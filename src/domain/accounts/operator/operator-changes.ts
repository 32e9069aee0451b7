import { type BrowserSession, listBrowserSessions } from '../../../persistence/accounts/browser-sessions.js'
import { deleteSessions } from '../../../persistence/accounts/oidc-records.js'
import { User } from '../../../persistence/models/user.js'
import type { Pod } from '../../../pod/pod.js'
import { enqueueAccountMail } from '../../mail/enqueue-mail.js'
import { Refusal } from '../../refusals.js'
import { resetPassword } from '../accounts.js'
import { type Factors, findFactors, removeFactors } from '../factors/second-factor.js'
import { endApplications } from '../sessions.js'
import { type AccountSettings, findSettings, type SettingsChange, writeSettings } from '../settings.js'
import { changeAsOperator, type OperatorPod, recordChange } from './change-as-operator.js'

async function findUserId({ db }: Pick<Pod, 'db'>, username: string): Promise<number> {
  const user = await User.byUsername(db, username)
  if (user === undefined) throw new Refusal('user_missing', `There is no local account named ${username}.`)
  return user.id
}

export async function listSessionsByOperator(
  pod: Pick<Pod, 'db'>,
  username: string,
): Promise<readonly BrowserSession[]> {
  return listBrowserSessions(pod.db, await findUserId(pod, username))
}

/** Ends the sessions of a user in all browsers, and the access of applications if wanted. */
export async function endSessionsByOperator(
  pod: OperatorPod,
  username: string,
  { applications }: { readonly applications: boolean },
): Promise<void> {
  await changeAsOperator(pod, username, 'user.sessions', async (transaction, { id, person }) => {
    await deleteSessions(transaction, person.address)
    if (applications) await endApplications(transaction, id)
    return { result: undefined, after: { applications } }
  })
}

export async function findFactorsByOperator(pod: Pick<Pod, 'db'>, username: string): Promise<Factors> {
  return findFactors(pod.db, await findUserId(pod, username))
}

/** Removes all second factors of a user who has lost them, and ends the sessions in browsers. */
export async function removeFactorsByOperator(pod: OperatorPod, username: string): Promise<void> {
  await changeAsOperator(pod, username, 'user.two_factor', async (transaction, { id, person }) => {
    const { totp, passkeys } = await findFactors(transaction, id)
    await removeFactors(transaction, id)
    await enqueueAccountMail(pod, transaction, 'second_factor_off', id)
    await deleteSessions(transaction, person.address)
    return { result: undefined, after: { totp, passkeys } }
  })
}

/** Sets a new password, and ends all access of the account. Applications can be excepted. */
export async function resetPasswordByOperator(
  pod: Pod,
  username: string,
  password: string,
  { shouldKeepApplications }: { readonly shouldKeepApplications: boolean },
): Promise<void> {
  await resetPassword(pod, username, password, { shouldKeepApplications }, (transaction, user) =>
    recordChange(pod, transaction, user, { action: 'user.password', after: { applications: shouldKeepApplications } }),
  )
}

/** Sets settings of a user. */
export async function changeSettingsByOperator(
  pod: OperatorPod,
  username: string,
  change: SettingsChange,
  names: readonly string[],
): Promise<void> {
  await changeAsOperator(pod, username, 'user.settings', async (transaction, { id }) => {
    await writeSettings({ db: transaction, locales: pod.locales }, id, change)
    return { result: undefined, after: { settings: names } }
  })
}

export async function findSettingsByOperator(
  pod: Pick<Pod, 'db' | 'locales'>,
  username: string,
): Promise<AccountSettings> {
  return findSettings(pod, await findUserId(pod, username))
}
