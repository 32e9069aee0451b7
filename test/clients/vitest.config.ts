import { defineConfig } from 'vitest/config'

/** Generated TypeScript clients against a pod. Installs the generators, so it needs the npm registry. */
export default defineConfig({
  test: {
    root: new URL('../..', import.meta.url).pathname,
    globalSetup: ['test/support/vitest/global-setup.ts'],
    include: ['test/clients/*.test.ts'],
    testTimeout: 180_000,
    hookTimeout: 180_000,
  },
})
