import { messageOf } from '../../errors/thrown.js'

/** The result of a check; the message includes the remedy if there is one. */
export interface CheckResult {
  readonly check: string
  readonly state: 'ok' | 'warn' | 'fail'
  readonly message: string
}

export function checkPassed(check: string, message: string): CheckResult {
  return { check, state: 'ok', message }
}

export function checkWarning(check: string, message: string): CheckResult {
  return { check, state: 'warn', message }
}

export function checkFailure(check: string, message: string): CheckResult {
  return { check, state: 'fail', message }
}

/** A check that throws is a failed check. */
export async function withCheckFailure(
  check: string,
  run: () => Promise<readonly CheckResult[]>,
): Promise<readonly CheckResult[]> {
  try {
    return await run()
  } catch (error) {
    return [checkFailure(check, messageOf(error))]
  }
}
