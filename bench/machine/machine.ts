import type { ChildProcess } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import { availableParallelism } from 'node:os'
import type { Knex } from 'knex'
import { queryPrepared } from '../../src/persistence/database/database.js'
import type { VerifyResult, VerifyTask } from '../load/verify-load.js'
import { forkFile, nextMessage } from './child-process.js'

/** Rates of unavoidable work, measured by wall clock and under the same load of the machine as the results. */
export interface Machine {
  /** Signatures that all cores together verify per second. */
  verifications(bits: number): Promise<number>
  close(): void
}

const VERIFY_FOR_MS = 400
const INSERT_FOR_MS = 400
const ROWS = 128
const POSTS = 400
const PEOPLE = 16
const TEXT = 'x'.repeat(150)

export function openMachine(): Machine {
  const processes = Array.from({ length: availableParallelism() }, () => forkFile('load/verify-load'))
  const runOnAllCores = (task: VerifyTask) => Promise.all(processes.map((process) => runVerifyTask(process, task)))
  return {
    async verifications(bits) {
      await runOnAllCores({ bits })
      const rates = await runOnAllCores({ bits, milliseconds: VERIFY_FOR_MS })
      return rates.reduce((sum, { perSecond }) => sum + perSecond, 0)
    },
    close() {
      for (const process of processes) process.kill()
    },
  }
}

async function runVerifyTask(process: ChildProcess, task: VerifyTask): Promise<VerifyResult> {
  process.send(task)
  return nextMessage<VerifyResult>(process)
}

/**
 * Rows with the width and the indexes of most stored messages, without further work: no parent lookup, no foreign
 * keys, no counters and no notifications. Rows of two columns would be a limit that no table of a pod could approach.
 */
export async function makeBareTable(db: Knex): Promise<void> {
  await db.raw('create table if not exists bare_rows (like comments including all)')
}

const newBareRows = `
  insert into bare_rows (guid, post_id, author_id, text)
  select * from unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[])`

/** Rows that one connection inserts per second, 128 per statement, without the time for generating them. */
export async function insertsPerSecond(db: Knex): Promise<number> {
  let milliseconds = 0
  let inserted = 0
  while (milliseconds < INSERT_FOR_MS) {
    const rows = bareRows()
    const start = performance.now()
    await queryPrepared(db, 'new-bare-rows', newBareRows, rows)
    milliseconds += performance.now() - start
    inserted += ROWS
  }
  await db.raw('truncate bare_rows')
  return (inserted * 1_000) / milliseconds
}

/** Rows like those of a burst of comments: random guids, 400 posts, 16 authors. */
function bareRows(): readonly (readonly unknown[])[] {
  const numbers = Array.from({ length: ROWS }, (_, index) => index)
  return [
    numbers.map(() => randomBytes(16).toString('hex')),
    numbers.map(() => randomInt(POSTS)),
    numbers.map((number) => number % PEOPLE),
    numbers.map(() => TEXT),
  ]
}
