import { defineConfig } from 'vitest/config'
import { TableReporter } from '../support/vitest/table-reporter.js'
import { CHECKLIST } from './checklist.js'

/** The security checklist, case by case; ends with a table of it. */
export default defineConfig({
  test: {
    root: new URL('../..', import.meta.url).pathname,
    globalSetup: ['test/support/vitest/global-setup.ts'],
    include: ['test/attacks/**/*.test.ts'],
    reporters: ['default', new TableReporter({ checklist: CHECKLIST, pattern: /(?:^|> )(S[0-9]{2,3}):/ })],
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
})
