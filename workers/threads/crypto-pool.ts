import { availableParallelism } from 'node:os'
import { Piscina } from 'piscina'
import type { PodCrypto } from '../../src/pod/pod.js'
import { type CryptoLoad, noteCryptoTask } from './crypto-metrics.js'
import type * as tasks from './crypto-thread.js'
import { inParts } from './in-parts.js'
import { THREAD_LIMITS } from './limits.js'

/** Under vitest and tsx this file is TypeScript, and each thread has to load tsx for itself. */
const entry = import.meta.url.endsWith('.ts') ? './from-source.mjs' : './crypto-thread.js'
const threadFile = new URL(entry, import.meta.url).href

/** Milliseconds. The time to find two primes of 2048 bits varies widely. */
const KEY_GENERATION_WITHIN = 60_000
/** Milliseconds for a signature, waiting for a free thread included. HTTP clients have given up by then. */
const SIGNING_WITHIN = 10_000
/** Milliseconds for a task of envelopes, waiting for a free thread included; a batch has its own deadline behind it. */
const OPENING_WITHIN = 30_000
/** A task costs as much as a signature, and a longer task delays others. */
const ENVELOPES_A_TASK = { least: 32, most: 64 }
/** A private-key operation of 4096 bits takes as long as sixty verifications. */
const PRIVATE_KEYS_A_TASK = { least: 1, most: 4 }

/** The objects of a task are garbage after it: a larger young generation only takes memory. */
const YOUNG_MB = 16

type Tasks = typeof tasks

/** A task exceeded its time. */
class ThreadTimeout extends Error {
  override name = 'ThreadTimeout'
}

/** Too many tasks wait; a retry may succeed. The queue of the pool has no limit for tasks with a signal. */
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

  let closed = false
  let inHand = 0

  async function run<Name extends keyof Tasks>(
    name: Name,
    task: Parameters<Tasks[Name]>[0],
    within: number,
  ): Promise<Awaited<ReturnType<Tasks[Name]>>> {
    if (closed) throw new Error('The threads have been closed.') // the pool would start new threads
    if (inHand >= threads + THREAD_LIMITS.tasksQueued) throw new ThreadsBusy('The threads have too much to do.')
    const signal = AbortSignal.timeout(within)
    const began = performance.now()
    inHand += 1
    try {
      return await pool.run(task, { name, signal })
    } catch (error) {
      // Not an outage: the input may be the cause.
      if (signal.aborted) throw new ThreadTimeout(`${name} took longer than ${within} ms.`, { cause: error })
      throw error
    } finally {
      inHand -= 1
      noteCryptoTask(name, performance.now() - began)
    }
  }

  return {
    generateKeyPair: (bits = 4096) => run('generateKeyPair', { bits }, keyGenerationWithin),
    async openEnvelopes(messages, keys) {
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
    sealEnvelope: (payload, sender, key) => run('sealEnvelope', { payload, sender, key }, SIGNING_WITHIN),
    async encryptEnvelope(envelope, recipientKeys) {
      const tasks = inParts(recipientKeys, ENVELOPES_A_TASK, threads).map((part) =>
        run('encryptEnvelope', { envelope, recipientKeys: part }, OPENING_WITHIN),
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
    load: () => ({ threads, running: inHand - pool.queueSize, waiting: pool.queueSize }),
    async close() {
      closed = true
      await pool.destroy()
    },
  }
}
