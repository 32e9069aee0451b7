import { defineConfig } from 'vitest/config'
import { TableReporter } from '../../support/table-reporter.js'
import { FAULTS, NOT_TRIED } from './faults.js'

/** What the pod must survive, fault by fault; ends with a table of it. */
export default defineConfig({
  test: {
    root: new URL('../../..', import.meta.url).pathname,
    globalSetup: ['test/support/global-setup.ts'],
    include: ['test/faults/matrix/**/*.test.ts'],
    reporters: [
      'default',
      new TableReporter({ checklist: FAULTS, pattern: /(?:^|> )(F[0-9]{2}):/, notTried: NOT_TRIED }),
    ],
    // Each of them is a whole pod of four processes and two stores.
    fileParallelism: false,
    testTimeout: 180_000,
    hookTimeout: 120_000,
  },
})
