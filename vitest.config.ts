import { configDefaults, defineConfig } from 'vitest/config'

export default defineConfig({
  test: {
    globalSetup: ['test/support/global-setup.ts'],
    include: ['test/**/*.test.ts'],
    // Suites of their own: `npm run attacks` and `npm run faults`.
    exclude: [...configDefaults.exclude, 'test/attacks/**', 'test/faults/matrix/**'],
    testTimeout: 20_000,
    hookTimeout: 60_000,
  },
})
