// npm run screenshots: makes the pictures in docs/pictures from a pod with sample data, in Chromium.
import { spawnSync } from 'node:child_process'

const { status } = spawnSync('npx', ['vitest', 'run', '--config', 'test/screenshots/vitest.config.ts'], {
  stdio: 'inherit',
})
process.exit(status ?? 1)
