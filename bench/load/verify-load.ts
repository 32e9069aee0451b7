import { makeSignedSample, type SignedSample } from '../machine/signed-sample.js'

/** Message to a process that only verifies signatures. */
export interface VerifyTask {
  readonly bits: number
  /** Duration of the verifications. Not set: only the key is generated, which takes long. */
  readonly milliseconds?: number
}

export interface VerifyResult {
  readonly perSecond: number
}

const samples = new Map<number, SignedSample>()

process.on('message', ({ bits, milliseconds = 0 }: VerifyTask) => {
  const sample = samples.get(bits) ?? makeSignedSample(bits)
  samples.set(bits, sample)
  const start = performance.now()
  let times = 0
  while (performance.now() - start < milliseconds) {
    sample.verifyOnce()
    times += 1
  }
  const result: VerifyResult = { perSecond: (times * 1_000) / (performance.now() - start) }
  process.send?.(result)
})
