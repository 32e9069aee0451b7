import { makeSignedSample, type SignedSample } from '../machine/signed-sample.js'

/** A number of verifications with one key. */
export interface Verifications {
  readonly bits: number
  readonly times: number
}

const samples = new Map<number, SignedSample>()

/** Task of a thread that only verifies signatures. */
export default function verify({ bits, times }: Verifications): void {
  const sample = samples.get(bits) ?? makeSignedSample(bits)
  samples.set(bits, sample)
  for (let done = 0; done < times; done += 1) sample.verifyOnce()
}
