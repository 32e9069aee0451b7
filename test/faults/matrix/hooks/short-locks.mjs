import { isMainThread } from 'node:worker_threads'

/** Short job locks, so that tests do not wait for minutes. They are long enough for a busy machine. */
const LOCK_MS = 8_000
const STALLED_CHECK_MS = 1_000

if (isMainThread) {
  const { Worker } = await import('bullmq')
  const { createBackend } = Worker.prototype
  if (createBackend === undefined) throw new Error('BullMQ: Worker.prototype.createBackend does not exist any more.')
  // The options must change before the back end is created, because the back end copies them.
  Worker.prototype.createBackend = function () {
    Object.assign(this.opts, { lockDuration: LOCK_MS, lockRenewTime: LOCK_MS / 2, stalledInterval: STALLED_CHECK_MS })
    createBackend.call(this)
  }
}
