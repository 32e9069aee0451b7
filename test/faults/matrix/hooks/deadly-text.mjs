import { mkdirSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

/**
 * A post with the first text takes every worker with it that is about to store it; with the second one, the first of them stands
 * still until it is woken; the third one keeps the first of them from doing anything else.
 */
const {
  FAULTS_KILLING: killing,
  FAULTS_FREEZING: freezing,
  FAULTS_BLOCKING: blocking,
  FAULTS_BLOCKED_MS: blockedFor,
} = process.env

if (isMainThread) {
  const { default: pg } = await import('pg')
  const { query } = pg.Client.prototype
  pg.Client.prototype.query = function (...args) {
    const values = storedBy(args[0])
    if (values.includes(killing)) process.kill(process.pid, 'SIGKILL')
    if (values.includes(freezing) && isFirst('frozen-once')) process.kill(process.pid, 'SIGSTOP')
    if (values.includes(blocking) && isFirst('blocked-once')) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(blockedFor))
    }
    return query.apply(this, args)
  }
}

function storedBy(statement) {
  return /insert into "?posts\b/i.test(statement?.text) ? JSON.stringify(statement.values) : ''
}

/** Of all processes, which share their working folder. */
function isFirst(name) {
  try {
    mkdirSync(name)
    return true
  } catch {
    return false
  }
}
