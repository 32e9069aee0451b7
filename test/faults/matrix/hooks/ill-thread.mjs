import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import { isMainThread } from 'node:worker_threads'

/** What becomes of a thread that decrypts with such an initialisation vector, which is sixteen bytes long. */
const illnesses = new Map([
  ['a thread dies...', () => process.exit(1)],
  ['a thread loops..', loop],
  ['a thread eats...', eat],
])

/** What a thread has for opening messages; one that loops takes all of it, twice, and is as ill after a third of it. */
const ENVELOPES_WITHIN_MS = 30_000
const SHORTENED = 10_000

if (isMainThread) {
  const { timeout } = AbortSignal
  AbortSignal.timeout = (within) => timeout.call(AbortSignal, within === ENVELOPES_WITHIN_MS ? SHORTENED : within)
} else {
  const { createDecipheriv } = crypto
  crypto.createDecipheriv = (...args) => {
    illnesses.get(String(args[2]))?.()
    return createDecipheriv(...args)
  }
  syncBuiltinESMExports()
}

function loop() {
  for (;;);
}

function eat() {
  for (const eaten = []; ; ) eaten.push(new Array(10_000).fill(eaten.length))
}
