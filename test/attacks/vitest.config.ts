import { defineConfig } from 'vitest/config'

/** The security checklist, case by case; ends with a table of it. */
export default defineConfig({
  test: {
    root: new URL('../..', import.meta.url).pathname,
    globalSetup: ['test/support/global-setup.ts'],
    include: ['test/attacks/**/*.test.ts'],
    reporters: ['default', './test/attacks/table-reporter.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
  },
})
