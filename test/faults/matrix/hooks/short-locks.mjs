import { isMainThread } from 'node:worker_threads'

/** A job is lost to others after seconds, and they find it soon after: tests cannot wait for minutes. A busy machine must still keep up. */
const LOCK = 8_000
const STALLED_CHECK = 1_000

if (isMainThread) {
  const { Worker } = await import('bullmq')
  const { createBackend } = Worker.prototype
  if (createBackend === undefined) throw new Error('A worker of BullMQ does not make its own back end any more.')
  // Whatever looks at the options later, this comes before it: what talks to the queue has a copy of its own.
  Worker.prototype.createBackend = function () {
    Object.assign(this.opts, { lockDuration: LOCK, lockRenewTime: LOCK / 2, stalledInterval: STALLED_CHECK })
    createBackend.call(this)
  }
}
