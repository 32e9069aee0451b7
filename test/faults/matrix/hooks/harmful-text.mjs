import { mkdirSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

/**
 * Faults of a worker before it stores a post with one of these texts: the first text kills every worker, the second one freezes the
 * first worker until SIGCONT, and the third one blocks the event loop of the first worker.
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
    const values = storedValuesOf(args[0])
    if (values.includes(killing)) process.kill(process.pid, 'SIGKILL')
    if (values.includes(freezing) && isFirst('frozen-once')) process.kill(process.pid, 'SIGSTOP')
    if (values.includes(blocking) && isFirst('blocked-once')) {
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(blockedFor))
    }
    return query.apply(this, args)
  }
}

function storedValuesOf(statement) {
  return /insert into "?posts\b/i.test(statement?.text) ? JSON.stringify(statement.values) : ''
}

/** Whether no other process has called this before. All processes share a working folder. */
function isFirst(name) {
  try {
    mkdirSync(name)
    return true
  } catch {
    return false
  }
}
