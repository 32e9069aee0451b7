import { generateKeyPairSync, randomBytes, sign, verify } from 'node:crypto'

/** What a process that does nothing but verify is told: to get ready, and then to go on for a while. */
export interface VerifyTask {
  readonly bits: number
  /** Not set: only the key is made, which takes its time. */
  readonly milliseconds?: number
}

export interface Verified {
  readonly perSecond: number
}

const subjects = new Map<number, () => boolean>()

process.on('message', ({ bits, milliseconds = 0 }: VerifyTask) => {
  const verifyOnce = subjects.get(bits) ?? makeSubject(bits)
  subjects.set(bits, verifyOnce)
  const start = performance.now()
  let times = 0
  while (performance.now() - start < milliseconds) {
    verifyOnce()
    times += 1
  }
  const verified: Verified = { perSecond: (times * 1_000) / (performance.now() - start) }
  process.send?.(verified)
})

function makeSubject(bits: number): () => boolean {
  const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: bits })
  const bytes = randomBytes(1_024)
  const signature = sign('sha256', bytes, privateKey)
  return () => verify('sha256', bytes, publicKey, signature)
}
