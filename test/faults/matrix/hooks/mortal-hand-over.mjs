import { isMainThread } from 'node:worker_threads'

/**
 * Dies on command, in one of the two moments in which the work of a web process is not visible to other processes yet.
 * `acknowledged`: the queue has a message, and whoever sent it has no answer. `committed`: what a client has written is there, and
 * the queue does not know what follows from it.
 */
let moment

if (isMainThread) {
  process.on('message', ({ dieWhen }) => {
    moment = dieWhen
  })
  process.channel?.unref()

  const { Queue } = await import('bullmq')
  const { add, addBulk } = Queue.prototype
  Queue.prototype.add = async function (...args) {
    const job = await add.apply(this, args)
    if (moment === 'acknowledged') process.kill(process.pid, 'SIGKILL')
    return job
  }
  Queue.prototype.addBulk = async function (...args) {
    if (moment === 'committed') process.kill(process.pid, 'SIGKILL')
    return addBulk.apply(this, args)
  }
}
