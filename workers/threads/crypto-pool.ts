import { availableParallelism } from 'node:os'
import { Piscina } from 'piscina'
import type { EnvelopeVerification } from '../../src/protocol/envelopes/verify-envelope.js'
import type { PodCrypto, ReceivedEnvelope } from '../../src/services/pod-crypto.js'
import { type CryptoLoad, recordCryptoTask, recordCryptoWait } from './crypto-metrics.js'
import type * as tasks from './crypto-thread.js'
import { verifyEnvelopes } from './crypto-thread.js'
import { openFreeThreads } from './free-threads.js'
import { inParts, type PartLimits } from './in-parts.js'
import { THREAD_LIMITS } from './limits.js'

/** Under vitest and tsx this file is TypeScript. A thread does not inherit their loader, so its entry file loads tsx. */
const entry = import.meta.url.endsWith('.ts') ? './from-source.mjs' : './crypto-thread.js'
const threadFile = new URL(entry, import.meta.url).href

/**
 * Envelopes per task. Each task costs as much as one verification, so tasks are not small; a long task delays others, so they are not
 * large.
 */
const ENVELOPES_A_TASK = { min: 32, max: 64 }
/**
 * A batch of one envelope of this length is verified without a thread: a public-key operation takes less than the way to a thread and
 * back (docs/decisions/0054).
 */
const VERIFIED_HERE_CHARS = 16_384
/** Envelopes to decrypt per task. A private-key operation of 4096 bits takes as long as sixty verifications. */
const PRIVATE_KEYS_A_TASK = { min: 1, max: 4 }

type Tasks = typeof tasks

/** Milliseconds by which a long task is due later than a short one that is added at the same time. Others are due at once. */
const DUE_AFTER_MS: Readonly<Partial<Record<keyof Tasks, number>>> = {
  decryptEnvelopes: 50,
  signEnvelopes: 100,
  generateKeyPair: 200,
}

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
  keyGenerationWithinMs: number = THREAD_LIMITS.keyPairMs,
): PodCrypto & { load(): CryptoLoad; close(): Promise<void> } {
  const pool = new Piscina({
    filename: threadFile,
    minThreads: 0,
    maxThreads: threads,
    idleTimeout: 60_000,
    resourceLimits: {
      maxOldGenerationSizeMb: THREAD_LIMITS.oldMegabytes,
      maxYoungGenerationSizeMb: THREAD_LIMITS.youngMegabytes,
    },
  })

  const freeThreads = openFreeThreads(threads)
  let isClosed = false
  let unfinishedTasks = 0

  async function runInThread(name: keyof Tasks, task: object, signal: AbortSignal) {
    try {
      if (isClosed) throw new Error('The threads have been closed.') // the pool would start new threads
      return await pool.run(task, { name, signal })
    } finally {
      freeThreads.giveBack()
    }
  }

  async function run<Name extends keyof Tasks>(
    name: Name,
    task: Parameters<Tasks[Name]>[0],
    withinMs: number,
  ): Promise<Awaited<ReturnType<Tasks[Name]>>> {
    if (unfinishedTasks >= threads + THREAD_LIMITS.tasksQueued)
      throw new ThreadsBusy('Too many tasks wait for a thread.')
    const signal = AbortSignal.timeout(withinMs)
    const began = performance.now()
    unfinishedTasks += 1
    try {
      await freeThreads.take(began + (DUE_AFTER_MS[name] ?? 0), signal).finally(() => recordCryptoWait(began))
      return await runInThread(name, task, signal)
    } catch (error) {
      // Not an outage: the input may be the cause.
      if (signal.aborted) throw new ThreadTimeout(`${name} took longer than ${withinMs} ms.`, { cause: error })
      throw error
    } finally {
      unfinishedTasks -= 1
      recordCryptoTask(name, performance.now() - began)
    }
  }

  /** Runs a task for each part of the items. The results are in the order of the items. */
  async function runInParts<Item, Result>(
    items: readonly Item[],
    limits: PartLimits,
    runPart: (part: readonly Item[]) => Promise<readonly Result[]>,
  ): Promise<readonly Result[]> {
    const results = await Promise.all(inParts(items, limits, threads).map(runPart))
    return results.flat()
  }

  return {
    generateKeyPair: (bits = 4096) => run('generateKeyPair', { bits }, keyGenerationWithinMs),
    async verifyEnvelopes(messages, keys) {
      if (isSingleSmallEnvelope(messages)) return verifyHere({ messages, keys })
      return runInParts(messages, ENVELOPES_A_TASK, (part) =>
        run('verifyEnvelopes', { messages: part, keys }, THREAD_LIMITS.envelopesMs),
      )
    },
    decryptEnvelopes: (encrypted) =>
      runInParts(encrypted, PRIVATE_KEYS_A_TASK, (messages) =>
        run('decryptEnvelopes', { messages }, THREAD_LIMITS.envelopesMs),
      ),
    signRelayable: (relayable, key) => run('signRelayable', { relayable, key }, THREAD_LIMITS.signatureMs),
    signMigration: (move, key) => run('signMigration', { ...move, key }, THREAD_LIMITS.signatureMs),
    signEnvelope: (payload, sender, key) => run('signEnvelope', { payload, sender, key }, THREAD_LIMITS.signatureMs),
    signEnvelopes: (unsigned) =>
      runInParts(unsigned, PRIVATE_KEYS_A_TASK, (messages) =>
        run('signEnvelopes', { messages }, THREAD_LIMITS.envelopesMs),
      ),
    encryptEnvelopes: (unencrypted) =>
      runInParts(unencrypted, ENVELOPES_A_TASK, (envelopes) =>
        run('encryptEnvelopes', { envelopes }, THREAD_LIMITS.envelopesMs),
      ),
    async readDocument(document) {
      try {
        return await run('readDocument', document, THREAD_LIMITS.documentMs)
      } catch (error) {
        if (!(error instanceof ThreadTimeout)) throw error
        return { state: 'rejected', fault: 'DiscoveryFailed', reason: 'the document takes too long to read' }
      }
    },
    load: () => ({ threads, running: unfinishedTasks - freeThreads.waiting, waiting: freeThreads.waiting }),
    async close() {
      isClosed = true
      await pool.destroy()
    },
  }
}

function isSingleSmallEnvelope(messages: readonly ReceivedEnvelope[]): boolean {
  const [message] = messages
  return messages.length === 1 && message !== undefined && message.envelope.length <= VERIFIED_HERE_CHARS
}

function verifyHere(task: Parameters<typeof verifyEnvelopes>[0]): readonly EnvelopeVerification[] {
  const began = performance.now()
  const verifiedEnvelopes = verifyEnvelopes(task)
  recordCryptoTask('verifyEnvelopes', performance.now() - began)
  return verifiedEnvelopes
}
