import { availableParallelism, totalmem } from 'node:os'
import { defineConfig } from 'vitest/config'
import { redisProgram } from '../../support/queues/redis-server.js'
import { TableReporter } from '../../support/vitest/table-reporter.js'
import { FAULTS } from './faults.js'
import { LongestFirst } from './longest-first.js'
import type { Store } from './this-run.js'

const root = new URL('../../..', import.meta.url).pathname
/** Seed of the random fault moments and load; FAULTS_SEED repeats a run. */
const seed = Number(process.env['FAULTS_SEED'] ?? Date.now() % 1_000_000)
/** The suite cannot stop a Redis that it has not started. */
const stores: readonly Store[] = redisProgram() === undefined ? ['PostgreSQL'] : ['PostgreSQL', 'Redis']

/** Memory for four pods, their stores and their senders. */
const ENOUGH_MEMORY = 6 * 2 ** 30

/** `npm run faults` compiles first; a run of a single case may not. */
const compiled = process.env['npm_lifecycle_event'] === 'faults' ? { COMPILED_POD: `${root}dist` } : {}

/** Faults that do not apply when the queue is in PostgreSQL. */
const OF_REDIS = ['test/faults/matrix/redis*.test.ts']
const NOT_TRIED = Object.fromEntries(
  ['F06', 'F07', 'F08', 'F09', 'F10', 'F11', 'F36'].map((number) => [
    number,
    'there is no redis-server or valkey-server on the PATH',
  ]),
)

const limits = { testTimeout: 400_000, hookTimeout: 120_000 }

/** These files share the database server of a run, and run each store of the queue themselves. */
const killed = {
  name: 'killed',
  root,
  include: ['test/faults/killed/*.test.ts'],
  globalSetup: ['test/support/vitest/global-setup.ts'],
  env: compiled,
  ...limits,
}

/** Runs every fault once for each store of the queue, and ends with a table of the results. */
export default defineConfig({
  test: {
    // Each file runs a pod of four processes and two stores, which is mostly idle; more at the same time cause 503.
    maxWorkers: totalmem() < ENOUGH_MEMORY ? 2 : Math.min(4, availableParallelism() + 1),
    reporters: [
      'default',
      new TableReporter({
        checklist: FAULTS,
        pattern: /(?:^|> )(F[0-9]{2}):/,
        remark: `seed ${seed}`,
        notTried: stores.includes('Redis') ? {} : NOT_TRIED,
      }),
    ],
    sequence: { sequencer: LongestFirst },
    projects: [
      { test: killed },
      ...stores.map((store) => ({
        test: {
          name: store,
          root,
          include: ['test/faults/matrix/**/*.test.ts'],
          exclude: store === 'Redis' ? [] : OF_REDIS,
          env: compiled,
          provide: { store, seed },
          ...limits,
        },
      })),
    ],
  },
})
