import { availableParallelism } from 'node:os'
import { Piscina } from 'piscina'
import type { PodCrypto, ReceivedEnvelope } from '../../src/pod/pod.js'
import type { VerifiedEnvelope } from '../../src/protocol/envelopes/verify-envelope.js'
import { type CryptoLoad, recordCryptoTask, watchWaits } from './crypto-metrics.js'
import type * as tasks from './crypto-thread.js'
import { openEnvelopes } from './crypto-thread.js'
import { inParts } from './in-parts.js'
import { THREAD_LIMITS } from './limits.js'

/** Under vitest and tsx this file is TypeScript. A thread does not inherit their loader, so its entry file loads tsx. */
const entry = import.meta.url.endsWith('.ts') ? './from-source.mjs' : './crypto-thread.js'
const threadFile = new URL(entry, import.meta.url).href

/** Milliseconds for a key pair. The time to find two primes of 2048 bits varies by an order of magnitude. */
const KEY_GENERATION_WITHIN = 60_000
/** Milliseconds for a signature, including the wait for a thread. HTTP clients time out at about the same time. */
const SIGNING_WITHIN = 10_000
/**
 * Milliseconds for a task of envelopes, including the wait for a thread. Shorter than the deadline of a job, which would hide the cause.
 */
const OPENING_WITHIN = 30_000
/**
 * Envelopes per task. Each task costs as much as one verification, so tasks are not small; a long task delays others, so they are not
 * large.
 */
const ENVELOPES_A_TASK = { least: 32, most: 64 }
/**
 * A batch of one envelope of this length is verified without a thread: a public-key operation takes less than the way to a thread and
 * back (docs/decisions/0054).
 */
const VERIFIED_HERE_CHARS = 16_384
/** Envelopes to decrypt per task. A private-key operation of 4096 bits takes as long as sixty verifications. */
const PRIVATE_KEYS_A_TASK = { least: 1, most: 4 }

/** Megabytes of a thread for new objects. They are garbage when the task ends, so that more memory would save no time. */
const YOUNG_MB = 16

type Tasks = typeof tasks

/** A task took longer than its timeout. */
class ThreadTimeout extends Error {
  override name = 'ThreadTimeout'
}

/** Too many tasks wait for a thread; a retry may succeed. */
class ThreadsBusy extends Error {
  override name = 'ThreadsBusy'
}

/** Threads for private-key work, signatures and documents of other pods. They start with the first task. */
export function openCryptoPool(
  threads = availableParallelism(),
  keyGenerationWithin = KEY_GENERATION_WITHIN,
): PodCrypto & { load(): CryptoLoad; close(): Promise<void> } {
  const pool = new Piscina({
    filename: threadFile,
    minThreads: 0,
    maxThreads: threads,
    idleTimeout: 60_000,
    resourceLimits: { maxOldGenerationSizeMb: 128, maxYoungGenerationSizeMb: YOUNG_MB },
  })

  const beginWait = watchWaits(threads)
  let isClosed = false
  let unfinished = 0

  async function run<Name extends keyof Tasks>(
    name: Name,
    task: Parameters<Tasks[Name]>[0],
    within: number,
  ): Promise<Awaited<ReturnType<Tasks[Name]>>> {
    if (isClosed) throw new Error('The threads have been closed.') // the pool would start new threads
    if (unfinished >= threads + THREAD_LIMITS.tasksQueued) throw new ThreadsBusy('Too many tasks wait for a thread.')
    const signal = AbortSignal.timeout(within)
    const began = performance.now()
    unfinished += 1
    const endTask = beginWait()
    try {
      return await pool.run(task, { name, signal })
    } catch (error) {
      // Not an outage: the input may be the cause.
      if (signal.aborted) throw new ThreadTimeout(`${name} took longer than ${within} ms.`, { cause: error })
      throw error
    } finally {
      unfinished -= 1
      endTask()
      recordCryptoTask(name, performance.now() - began)
    }
  }

  return {
    generateKeyPair: (bits = 4096) => run('generateKeyPair', { bits }, keyGenerationWithin),
    async openEnvelopes(messages, keys) {
      if (isOneSmall(messages)) return openHere({ messages, keys })
      const tasks = inParts(messages, ENVELOPES_A_TASK, threads).map((part) =>
        run('openEnvelopes', { messages: part, keys }, OPENING_WITHIN),
      )
      return (await Promise.all(tasks)).flat()
    },
    async openEncryptedEnvelopes(messages) {
      const tasks = inParts(messages, PRIVATE_KEYS_A_TASK, threads).map((part) =>
        run('openEncryptedEnvelopes', { messages: part }, OPENING_WITHIN),
      )
      return (await Promise.all(tasks)).flat()
    },
    signRelayable: (relayable, key) => run('signRelayable', { relayable, key }, SIGNING_WITHIN),
    signMigration: (move, key) => run('signMigration', { ...move, key }, SIGNING_WITHIN),
    sealEnvelope: (payload, sender, key) => run('sealEnvelope', { payload, sender, key }, SIGNING_WITHIN),
    async sealEnvelopes(messages) {
      const tasks = inParts(messages, PRIVATE_KEYS_A_TASK, threads).map((part) =>
        run('sealEnvelopes', { messages: part }, OPENING_WITHIN),
      )
      return (await Promise.all(tasks)).flat()
    },
    async encryptEnvelopes(envelopes) {
      const tasks = inParts(envelopes, ENVELOPES_A_TASK, threads).map((part) =>
        run('encryptEnvelopes', { envelopes: part }, OPENING_WITHIN),
      )
      return (await Promise.all(tasks)).flat()
    },
    async readDocument(document) {
      try {
        return await run('readDocument', document, THREAD_LIMITS.documentMs)
      } catch (error) {
        if (!(error instanceof ThreadTimeout)) throw error
        return { state: 'rejected', fault: 'DiscoveryFailed', reason: 'the document takes too long to read' }
      }
    },
    load: () => ({ threads, running: unfinished - pool.queueSize, waiting: pool.queueSize }),
    async close() {
      isClosed = true
      await pool.destroy()
    },
  }
}

function isOneSmall(messages: readonly ReceivedEnvelope[]): boolean {
  const [message] = messages
  return messages.length === 1 && message !== undefined && message.envelope.length <= VERIFIED_HERE_CHARS
}

function openHere(task: Parameters<typeof openEnvelopes>[0]): readonly VerifiedEnvelope[] {
  const began = performance.now()
  const opened = openEnvelopes(task)
  recordCryptoTask('openEnvelopes', performance.now() - began)
  return opened
}
