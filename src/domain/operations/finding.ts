import { messageOf } from '../../errors/thrown.js'

/** The result of a check; the message includes the remedy if there is one. */
export interface Finding {
  readonly check: string
  readonly state: 'ok' | 'warn' | 'fail'
  readonly message: string
}

export function ok(check: string, message: string): Finding {
  return { check, state: 'ok', message }
}

export function warn(check: string, message: string): Finding {
  return { check, state: 'warn', message }
}

export function fail(check: string, message: string): Finding {
  return { check, state: 'fail', message }
}

/** A check that throws is a failed check. */
export async function orFail(check: string, run: () => Promise<readonly Finding[]>): Promise<readonly Finding[]> {
  try {
    return await run()
  } catch (error) {
    return [fail(check, messageOf(error))]
  }
}
