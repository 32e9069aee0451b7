import { connectToMailServer } from '../../domain/mail/mail-operations.js'
import { checkMail } from '../../domain/operations/check-mail.js'
import { type CheckResult, checkFailure, checkPassed, withCheckFailure } from '../../domain/operations/check-result.js'
import { claimChecks, replaceChecks } from '../../persistence/operations/checks.js'
import type { Pod } from '../../pod/pod.js'
import { type AddressFindings, checkAddress } from './check-address.js'
import { checkClock } from './check-clock.js'
import type { OwnRequestOptions } from './own-request.js'

type CheckedPod = Pick<Pod, 'db' | 'config' | 'log' | 'now'>

/** Checks the pod from outside, and stores the results for the console, the API and the metrics. */
export async function runChecks(pod: CheckedPod, options: OwnRequestOptions = {}): Promise<readonly CheckResult[]> {
  let certificateEndsAt: AddressFindings['certificateEndsAt']
  const address = await withCheckFailure('address', async () => {
    const addressResults = await checkAddress(pod, pod.now(), options)
    certificateEndsAt = addressResults.certificateEndsAt
    return addressResults.findings
  })
  const findings = [
    ...address,
    ...(await withCheckFailure('clock', () => checkClock(pod))),
    ...(await withCheckFailure('mail', () => checkMail(pod.db, pod.config))),
    ...(await withCheckFailure('smtp', () => checkSmtp(pod))),
  ]
  await replaceChecks(
    pod.db,
    findings.map(({ check: name, state, message }) => {
      return { name, state, message, certificateEndsAt: (name === 'certificate' && certificateEndsAt) || null }
    }),
  )
  return findings
}

/** Connects and signs in, without sending a mail. */
async function checkSmtp(pod: CheckedPod): Promise<readonly CheckResult[]> {
  const steps = await connectToMailServer(pod)
  const failed = steps.find((step) => !step.ok)
  if (failed !== undefined) return [checkFailure('smtp', [failed.answer, failed.advice].filter(Boolean).join(' '))]
  return steps.length === 0 ? [] : [checkPassed('smtp', 'The mail server accepts a connection and a sign-in.')]
}

/** Runs the checks every six hours in one of all processes, and logs what needs an action. */
export async function runDueChecks(pod: CheckedPod): Promise<void> {
  if (pod.config.isolated) return
  try {
    if (!(await claimChecks(pod.db))) return
    for (const { check, state, message } of await runChecks(pod)) {
      if (state === 'fail') pod.log.warn({ check, reason: message }, 'check of the pod failed')
    }
  } catch (err) {
    pod.log.debug({ err }, 'checks not run') // an outage has its own log lines
  }
}
