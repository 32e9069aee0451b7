import { availableParallelism, totalmem } from 'node:os'
import { defineConfig } from 'vitest/config'
import { redisProgram } from '../../support/redis-server.js'
import { TableReporter } from '../../support/table-reporter.js'
import { FAULTS } from './faults.js'
import { LongestFirst } from './longest-first.js'
import type { Store } from './this-run.js'

const root = new URL('../../..', import.meta.url).pathname
/** Where faults strike, and what is sent meanwhile, comes from this number; FAULTS_SEED brings a run back. */
const seed = Number(process.env['FAULTS_SEED'] ?? Date.now() % 1_000_000)
/** One that somebody else has started cannot be taken away. */
const stores: readonly Store[] = redisProgram() === undefined ? ['PostgreSQL'] : ['PostgreSQL', 'Redis']

/** For four pods, their stores and their senders. */
const ENOUGH_MEMORY = 6 * 2 ** 30

/** `npm run faults` has just compiled everything; whoever runs a single case may not have. */
const compiled = process.env['npm_lifecycle_event'] === 'faults' ? { COMPILED_POD: `${root}dist` } : {}

/** Faults that are none where the queue is in PostgreSQL. */
const OF_REDIS = ['test/faults/matrix/redis*.test.ts']
const NOT_TRIED = Object.fromEntries(
  ['F06', 'F07', 'F08', 'F09', 'F10', 'F11', 'F36'].map((number) => [
    number,
    'there is no redis-server or valkey-server on the PATH',
  ]),
)

/** What the pod must survive, fault by fault, once for each store of the queue; ends with a table of it. */
export default defineConfig({
  test: {
    // Each file is a whole pod of four processes and two stores, which mostly waits; more of them make one another answer 503.
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
    projects: stores.map((store) => ({
      test: {
        name: store,
        root,
        include: ['test/faults/matrix/**/*.test.ts'],
        exclude: store === 'Redis' ? [] : OF_REDIS,
        env: compiled,
        provide: { store, seed },
        testTimeout: 400_000,
        hookTimeout: 120_000,
      },
    })),
  },
})
