import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'
import { isMainThread } from 'node:worker_threads'

/** Fault of a thread that decrypts with this initialisation vector of sixteen bytes. */
const faults = new Map([
  ['a thread dies...', () => process.exit(1)],
  ['a thread loops..', loop],
  ['a thread eats...', exhaustMemory],
])

/** Time limit of a task that opens envelopes, and a shorter one for the test. A looping thread reaches it twice. */
const ENVELOPES_WITHIN_MS = 30_000
const SHORTENED_MS = 10_000

if (isMainThread) {
  const { timeout } = AbortSignal
  AbortSignal.timeout = (within) => timeout.call(AbortSignal, within === ENVELOPES_WITHIN_MS ? SHORTENED_MS : within)
} else {
  const { createDecipheriv } = crypto
  crypto.createDecipheriv = (...args) => {
    faults.get(String(args[2]))?.()
    return createDecipheriv(...args)
  }
  syncBuiltinESMExports()
}

function loop() {
  for (;;);
}

function exhaustMemory() {
  for (const blocks = []; ; ) blocks.push(new Array(10_000).fill(blocks.length))
}
