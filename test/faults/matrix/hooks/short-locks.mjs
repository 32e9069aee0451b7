import { isMainThread } from 'node:worker_threads'

/** A job is lost to others after seconds, and they find it soon after: tests cannot wait for minutes. */
const LOCK = 8_000
const STALLED_CHECK = 1_000

if (isMainThread) {
  const { Worker } = await import('bullmq')
  // The first thing that a worker makes of its options.
  const { createLockManager } = Worker.prototype
  Worker.prototype.createLockManager = function () {
    Object.assign(this.opts, { lockDuration: LOCK, lockRenewTime: LOCK / 2, stalledInterval: STALLED_CHECK })
    createLockManager.call(this)
  }
}
