import type { Client } from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { administer } from '../../support/databases/test-database.js'
import { type PodUnderFaults, type ProcessKind, startPodUnderFaults } from './pod-under-faults.js'
import { openScenario } from './scenario-run.js'
import { statusesIn } from './senders.js'
import { store } from './this-run.js'

let podUnderFaults: PodUnderFaults
beforeAll(async () => {
  podUnderFaults = await startPodUnderFaults({ store: store() })
})
afterAll(() => podUnderFaults?.close())

/** Changes that migrations of a later release may make while this one still runs: additional columns and tables. */
async function addColumnsAndTables(client: Client): Promise<void> {
  const { rows } = await client.query<{ readonly name: string }>(
    `select quote_ident(tablename) as name from pg_tables where schemaname = 'public' and tablename !~ '^knex_'`,
  )
  for (const { name } of rows) {
    await client.query(`alter table ${name} add column added text, add column counted bigint not null default 0`)
  }
  await client.query('create table later (id bigint primary key, person_id bigint references people)')
  await client.query(`insert into knex_migrations (name, batch, migration_time) values ('9999-later', 99, now())`)
}

it('F29: this release keeps running, and starts, on the tables of a later one', async () => {
  const scenario = openScenario(podUnderFaults)
  const { violations, responses, writes } = await scenario.run(
    { messages: 300, perSecond: 20, writesPerSecond: 2 },
    async (progress) => {
      await progress.untilAccepted(0.2)
      await administer(podUnderFaults.database.url, addColumnsAndTables)
      await progress.untilAccepted(0.5)
      await Promise.all((['web', 'worker'] as const).map((kind) => podUnderFaults.killAndReplace(kind, 0)))
    },
  )

  expect(violations).toEqual([])
  const expected: readonly unknown[] = [200, 202, 503, 'none']
  expect(statusesIn([...responses, ...writes]).filter((status) => !expected.includes(status))).toEqual([])
})

const MINUTE_MS = 60_000

it('F39: half of the processes are of another release, and are killed', { timeout: 40 * MINUTE_MS }, async ({
  skip,
}) => {
  const program = process.env['OTHER_RELEASE']
  if (program === undefined) return skip('OTHER_RELEASE names no folder "dist" of another release')
  // The first web process and worker are of this release, the second ones of the other release.
  const hooksOf = (_kind: ProcessKind, index: number) => (index === 1 ? { hooks: [], program } : undefined)
  const mixed = await startPodUnderFaults({ store: store(), hooksOf })
  try {
    const { violations } = await openScenario(mixed).run(
      { messages: 20_000, perSecond: 200, writesPerSecond: 2, settledWithin: 20 * MINUTE_MS },
      async (progress) => {
        for (const share of [0.05, 0.1, 0.15, 0.2]) {
          await progress.untilAccepted(share)
          for (const kind of ['worker', 'web'] as const) {
            for (const index of [0, 1]) await mixed.killAndReplace(kind, index)
          }
        }
      },
    )

    expect(violations).toEqual([])
  } finally {
    await mixed.close()
  }
})
