import { defineConfig } from 'vitest/config'

/** Run by `scripts/make-screenshots.mjs`. */
export default defineConfig({
  test: {
    globalSetup: ['test/support/vitest/global-setup.ts'],
    include: ['test/screenshots/*.test.ts'],
    testTimeout: 120_000,
    hookTimeout: 60_000,
  },
})
