import { mkdirSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

/** A post with the first text takes every worker with it that is about to store it; the second one keeps one from doing anything else. */
const { FAULTS_KILLING: killing, FAULTS_BLOCKING: blocking, FAULTS_BLOCKED_MS: blockedFor } = process.env

if (isMainThread) {
  const { default: pg } = await import('pg')
  const { query } = pg.Client.prototype
  pg.Client.prototype.query = function (...args) {
    const values = storedBy(args[0])
    if (values.includes(killing)) process.kill(process.pid, 'SIGKILL')
    if (values.includes(blocking) && isFirst()) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(blockedFor))
    }
    return query.apply(this, args)
  }
}

function storedBy(statement) {
  return /insert into "?posts\b/i.test(statement?.text) ? JSON.stringify(statement.values) : ''
}

/** Of all processes, which share their working folder. */
function isFirst() {
  try {
    mkdirSync('blocked-once')
    return true
  } catch {
    return false
  }
}
