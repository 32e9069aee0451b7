import { defineConfig } from 'vitest/config'

/** Pods as processes with live peers; the peers of the network's own library need the environment that `main.ts` sets. */
export default defineConfig({
  test: {
    root: new URL('../..', import.meta.url).pathname,
    globalSetup: ['test/support/vitest/global-setup.ts'],
    include: ['test/interop/**/*.test.ts'],
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
})
