import { connectToMailServer } from '../../domain/mail/mail-operations.js'
import { checkMail } from '../../domain/operations/check-mail.js'
import {
  type CheckResult,
  checkFailure,
  checkPassed,
  checkWarning,
  withCheckFailure,
} from '../../domain/operations/check-result.js'
import { claimChecks, replaceChecks } from '../../persistence/operations/checks.js'
import type { Services } from '../../services/services.js'
import { type AddressFindings, checkOwnAddress } from './check-address.js'
import { checkClock } from './check-clock.js'
import type { OwnRequestOptions } from './own-request.js'

type CheckDependencies = Pick<Services, 'config' | 'db' | 'log' | 'now'>

/** The address of an isolated copy is that of its original. */
const NOT_CHECKED = checkWarning(
  'address',
  'This copy of the pod is isolated (ISOLATED): it requests no address and connects to no mail server.',
)

/** Checks the pod from outside, and stores the results for the console, the API and the metrics. */
export async function runChecks(
  services: CheckDependencies,
  options: OwnRequestOptions = {},
): Promise<readonly CheckResult[]> {
  if (services.config.isolated) return [NOT_CHECKED]
  let certificateEndsAt: AddressFindings['certificateEndsAt']
  const address = await withCheckFailure('address', async () => {
    const addressResults = await checkOwnAddress(services, services.now(), options)
    certificateEndsAt = addressResults.certificateEndsAt
    return addressResults.findings
  })
  const findings = [
    ...address,
    ...(await withCheckFailure('clock', () => checkClock(services))),
    ...(await withCheckFailure('mail', () => checkMail(services.db, services.config))),
    ...(await withCheckFailure('smtp', () => checkSmtp(services))),
  ]
  await replaceChecks(
    services.db,
    findings.map(({ check: name, state, message }) => {
      return { name, state, message, certificateEndsAt: (name === 'certificate' && certificateEndsAt) || null }
    }),
  )
  return findings
}

/** Connects and signs in, without sending a mail. */
async function checkSmtp(services: CheckDependencies): Promise<readonly CheckResult[]> {
  const steps = await connectToMailServer(services)
  const failedStep = steps.find((step) => !step.ok)
  if (failedStep !== undefined)
    return [checkFailure('smtp', [failedStep.answer, failedStep.advice].filter(Boolean).join(' '))]
  return steps.length === 0 ? [] : [checkPassed('smtp', 'The mail server accepts a connection and a sign-in.')]
}

/** Runs the checks every six hours in one of all processes, and logs what needs an action. */
export async function runDueChecks(services: CheckDependencies): Promise<void> {
  if (services.config.isolated) return
  try {
    if (!(await claimChecks(services.db))) return
    for (const { check, state, message } of await runChecks(services)) {
      if (state === 'fail') services.log.warn({ check, reason: message }, 'check of the pod failed')
    }
  } catch (err) {
    services.log.debug({ err }, 'checks not run') // an outage has its own log lines
  }
}
