import { type BrowserSession, listBrowserSessions } from '../../../persistence/accounts/browser-sessions.js'
import { type Factors, findFactors } from '../../../persistence/accounts/factors.js'
import { deleteSessions } from '../../../persistence/accounts/oidc-records.js'
import { User } from '../../../persistence/models/user.js'
import type { Services } from '../../../services/services.js'
import { enqueueAccountMail } from '../../mail/enqueue-mail.js'
import { Refusal } from '../../refusals.js'
import { resetPassword } from '../accounts.js'
import { removeFactors } from '../factors/second-factor.js'
import { endApplications } from '../sessions.js'
import { type AccountSettings, getSettings, type SettingsChange, writeSettings } from '../settings.js'
import { changeAsOperator, type OperatorDependencies, recordChange } from './change-as-operator.js'

async function getUserId({ db }: Pick<Services, 'db'>, username: string): Promise<number> {
  const user = await User.byUsername(db, username)
  if (user === undefined) throw new Refusal('user_missing', `There is no local account named ${username}.`)
  return user.id
}

export async function listSessionsByOperator(
  services: Pick<Services, 'db'>,
  username: string,
): Promise<readonly BrowserSession[]> {
  return listBrowserSessions(services.db, await getUserId(services, username))
}

/** Ends the sessions of a user in all browsers, and the access of applications if wanted. */
export async function endSessionsByOperator(
  services: OperatorDependencies,
  username: string,
  { applications }: { readonly applications: boolean },
): Promise<void> {
  await changeAsOperator(services, username, 'user.sessions', async (transaction, { id, person }) => {
    await deleteSessions(transaction, person.address)
    if (applications) await endApplications(transaction, id)
    return { result: undefined, after: { applications } }
  })
}

export async function findFactorsByOperator(services: Pick<Services, 'db'>, username: string): Promise<Factors> {
  return findFactors(services.db, await getUserId(services, username))
}

/** Removes all second factors of a user who has lost them, and ends the sessions in browsers. */
export async function removeFactorsByOperator(services: OperatorDependencies, username: string): Promise<void> {
  await changeAsOperator(services, username, 'user.two_factor', async (transaction, { id, person }) => {
    const { totp, passkeys } = await findFactors(transaction, id)
    await removeFactors(transaction, id)
    await enqueueAccountMail(services, transaction, 'second_factor_off', id)
    await deleteSessions(transaction, person.address)
    return { result: undefined, after: { totp, passkeys } }
  })
}

/** Sets a new password, and ends all access of the account. Applications can be excepted. */
export async function resetPasswordByOperator(
  services: Services,
  username: string,
  password: string,
  { shouldKeepApplications }: { readonly shouldKeepApplications: boolean },
): Promise<void> {
  await resetPassword(services, username, password, {
    shouldKeepApplications,
    inSameTransaction: (transaction, user) =>
      recordChange(services, transaction, user, {
        action: 'user.password',
        after: { applications: shouldKeepApplications },
      }),
  })
}

/** Sets settings of a user. */
export async function changeSettingsByOperator(
  services: OperatorDependencies,
  username: string,
  change: SettingsChange,
  names: readonly string[],
): Promise<void> {
  await changeAsOperator(services, username, 'user.settings', async (transaction, { id }) => {
    await writeSettings({ db: transaction, locales: services.locales }, id, change)
    return { result: undefined, after: { settings: names } }
  })
}

export async function findSettingsByOperator(
  services: Pick<Services, 'db' | 'locales'>,
  username: string,
): Promise<AccountSettings> {
  return getSettings(services, await getUserId(services, username))
}
