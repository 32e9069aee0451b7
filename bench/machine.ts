import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { availableParallelism } from 'node:os'
import type { Knex } from 'knex'
import type { Verified, VerifyTask } from './verify-load.js'

/** What nobody can do without, measured by the clock and beside the same neighbours as what it is compared with. */
export interface Machine {
  /** Signatures that all cores verify in a second when they do nothing else. */
  verifications(bits: number): Promise<number>
  close(): void
}

const VERIFY_FOR_MS = 400
const INSERT_FOR_MS = 400
const ROWS = 128

export function openMachine(): Machine {
  const ending = import.meta.url.endsWith('.ts') ? '.ts' : '.js'
  const processes = Array.from({ length: availableParallelism() }, () =>
    fork(new URL(`./verify-load${ending}`, import.meta.url)),
  )
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
  const [verified]: Verified[] = await once(process, 'message')
  if (verified === undefined) throw new Error('a process said nothing')
  return verified
}

export async function makeBareTable(db: Knex): Promise<void> {
  await db.raw('create table if not exists bare_rows (id bigint generated always as identity primary key, text text)')
}

/** Rows that one connection writes in a second, 128 at a time. */
export async function insertsPerSecond(db: Knex): Promise<number> {
  const rows = Array.from({ length: ROWS }, () => ({ text: 'x'.repeat(200) }))
  const start = performance.now()
  let inserted = 0
  while (performance.now() - start < INSERT_FOR_MS) {
    await db('bareRows').insert(rows)
    inserted += rows.length
  }
  const seconds = (performance.now() - start) / 1_000
  await db.raw('truncate bare_rows')
  return inserted / seconds
}
