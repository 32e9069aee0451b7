import type { Knex } from 'knex'
import type { Config } from '../../config/config.js'
import { findMailStatus } from '../mail/mail-operations.js'
import { type CheckResult, checkFailure, checkPassed, checkWarning } from './check-result.js'

/** Says whether the mail server accepts the mails of this pod. Sends nothing. */
export async function checkMail(db: Knex, config: Config): Promise<readonly CheckResult[]> {
  if (config.mail === undefined) {
    return [
      checkWarning('mail', 'SMTP_URL is not set: people cannot reset their password, and get no notices by mail.'),
    ]
  }
  const { failingSince, fault, dead, waiting } = await findMailStatus({ db, config })
  if (failingSince !== null) {
    const since = failingSince.toISOString()
    return [
      checkFailure(
        'mail',
        `The mail server refuses this pod since ${since} (${fault}): run "pod mail test <address>". ${waiting} mails wait.`,
      ),
    ]
  }
  if (dead > 0)
    return [checkWarning('mail', `${dead} mails were not sent in all attempts: see "pod dead list --queue mail".`)]
  return [
    checkPassed('mail', `The mail server is ${new URL(config.mail.url).hostname}; "pod mail test <address>" tries it.`),
  ]
}
