import { existsSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { configDefaults, defineConfig } from 'vitest/config'
import { IsolatedFirst } from './test/support/vitest/isolated-first-sequencer.js'

// Suites of their own: `npm run attacks`, `npm run faults`, `npm run interop`, `npm run clients` and `npm run screenshots`.
const elsewhere = [
  ...configDefaults.exclude,
  'test/attacks/**',
  'test/faults/killed/**',
  'test/faults/matrix/**',
  'test/interop/**',
  'test/clients/**',
  'test/screenshots/**',
]

// Each of these files opens a pod of its own, and what is kept between requests belongs to that pod; so
// several files can have one process after another, which loads the modules once. Loading them takes half of the time.
const inSharedProcesses = [
  'api',
  'domain',
  'federation',
  'jobs',
  'operations',
  'persistence',
  'protocol',
  'take-over',
  'web',
  'workers',
].map((folder) => `test/${folder}/**/*.test.ts`)

// The queue as BullMQ has it, without src/jobs/bullmq; tests of the tuning itself are not among these.
const queueTests = [
  'dead-letters',
  'job-options',
  'outbox',
  'pack-messages',
  'queue-outage',
  'queues',
  'unverified-messages',
  'waiting-messages',
].map((name) => existingFile(`test/jobs/${name}.test.ts`))

/** A pattern without a file would leave out the file silently. */
function existingFile(path: string): string {
  if (existsSync(new URL(path, import.meta.url))) return path
  throw new Error(`vitest.config.ts names ${path}, which does not exist.`)
}

/** `npm test` compiles first; a run of a single file may not. Compiled processes start in half of the time. */
const compiled =
  process.env['npm_lifecycle_event'] === 'test'
    ? { COMPILED_POD: fileURLToPath(new URL('dist/', import.meta.url)) }
    : {}

const common = {
  testTimeout: 60_000,
  hookTimeout: 120_000,
  // The default of one second is too short for a busy machine. A wait that succeeds takes no longer.
  expect: { poll: { timeout: 30_000 } },
  setupFiles: ['test/support/vitest/patient-waits.ts'],
}

export default defineConfig({
  test: {
    globalSetup: ['test/support/vitest/global-setup.ts'],
    // One more than there are processors, because tests often wait; more than four need more connections than the database has.
    maxWorkers: Math.min(Math.max(availableParallelism() + 1, 2), 4),
    sequence: { sequencer: IsolatedFirst },
    projects: [
      {
        test: {
          name: 'shared processes',
          include: inSharedProcesses,
          exclude: elsewhere,
          env: compiled,
          isolate: false,
          ...common,
        },
      },
      {
        test: {
          name: 'queue without tuning',
          include: [...queueTests, existingFile('test/workers/run-job.test.ts')],
          exclude: elsewhere,
          env: { QUEUE_TUNING: 'off' },
          isolate: false,
          ...common,
        },
      },
      {
        test: {
          name: 'own processes',
          include: ['test/**/*.test.ts'],
          exclude: [...elsewhere, ...inSharedProcesses],
          env: compiled,
          ...common,
        },
      },
    ],
  },
})
