import { isMainThread } from 'node:worker_threads'

/**
 * Kills the web process on command, between two steps of a request. `acknowledged`: the queue has stored a message, and the sender has
 * no response. `committed`: the change of a client is committed, and its jobs are not in the queue.
 */
let killAfter

if (isMainThread) {
  process.on('message', (message) => {
    killAfter = message.killAfter
  })
  process.channel?.unref()

  const { Queue } = await import('bullmq')
  const { add, addBulk } = Queue.prototype
  Queue.prototype.add = async function (...args) {
    const job = await add.apply(this, args)
    if (killAfter === 'acknowledged') process.kill(process.pid, 'SIGKILL')
    return job
  }
  Queue.prototype.addBulk = async function (...args) {
    if (killAfter === 'committed') process.kill(process.pid, 'SIGKILL')
    return addBulk.apply(this, args)
  }
}
