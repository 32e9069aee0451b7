import { makeSigned, type Signed } from '../machine/signed.js'

/** Instructions for a process that only verifies: to get ready, and then to run for a given time. */
export interface VerifyTask {
  readonly bits: number
  /** Not set: only the key is made, which takes its time. */
  readonly milliseconds?: number
}

export interface Verified {
  readonly perSecond: number
}

const subjects = new Map<number, Signed>()

process.on('message', ({ bits, milliseconds = 0 }: VerifyTask) => {
  const subject = subjects.get(bits) ?? makeSigned(bits)
  subjects.set(bits, subject)
  const start = performance.now()
  let times = 0
  while (performance.now() - start < milliseconds) {
    subject.verifyOnce()
    times += 1
  }
  const verified: Verified = { perSecond: (times * 1_000) / (performance.now() - start) }
  process.send?.(verified)
})
