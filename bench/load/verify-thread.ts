import { makeSigned, type Signed } from '../machine/signed.js'

/** So many signatures of one key, one after the other. */
export interface Verifications {
  readonly bits: number
  readonly times: number
}

const subjects = new Map<number, Signed>()

/** The task of a thread that does nothing but verify. */
export default function verify({ bits, times }: Verifications): void {
  const subject = subjects.get(bits) ?? makeSigned(bits)
  subjects.set(bits, subject)
  for (let done = 0; done < times; done += 1) subject.verifyOnce()
}
