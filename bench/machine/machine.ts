import type { ChildProcess } from 'node:child_process'
import { randomBytes, randomInt } from 'node:crypto'
import { availableParallelism } from 'node:os'
import type { Knex } from 'knex'
import { queryPrepared } from '../../src/persistence/database/database.js'
import type { Verified, VerifyTask } from '../load/verify-load.js'
import { forkFile, said } from './child-process.js'

/** Unavoidable work, measured by wall clock under the same concurrent load as the results it is compared with. */
export interface Machine {
  /** Signatures that all cores verify in a second when they do nothing else. */
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
  const tellAll = (task: VerifyTask) => Promise.all(processes.map((process) => tell(process, task)))
  return {
    async verifications(bits) {
      await tellAll({ bits })
      const rates = await tellAll({ bits, milliseconds: VERIFY_FOR_MS })
      return rates.reduce((sum, { perSecond }) => sum + perSecond, 0)
    },
    close() {
      for (const process of processes) process.kill()
    },
  }
}

async function tell(process: ChildProcess, task: VerifyTask): Promise<Verified> {
  process.send(task)
  return said<Verified>(process)
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

/** Rows that one connection writes in a second, 128 at a time; making them up is not counted. */
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

/** As comments come in a burst: guids in any order, under some hundred posts, by a dozen people. */
function bareRows(): readonly (readonly unknown[])[] {
  const numbers = Array.from({ length: ROWS }, (_, index) => index)
  return [
    numbers.map(() => randomBytes(16).toString('hex')),
    numbers.map(() => randomInt(POSTS)),
    numbers.map((number) => number % PEOPLE),
    numbers.map(() => TEXT),
  ]
}
