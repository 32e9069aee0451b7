import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { gemEnvironment, installGems } from './gems.js'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))

/** `npm run interop`: pods with the network's own library as a live peer, and pods behind a bad network. */
const gems = installGems()
const suites = gems.isInstalled ? ['test/interop'] : ['test/interop/bad-network.test.ts']
const args = ['vitest', 'run', '--config', 'test/interop/vitest.config.ts', ...suites, ...process.argv.slice(2)]
const { status } = spawnSync('npx', args, {
  cwd: ROOT,
  stdio: 'inherit',
  env: { ...process.env, ...(gems.isInstalled ? gemEnvironment() : {}) },
})
if (!gems.isInstalled) console.log(`Not run: the network's own library as a peer (${gems.reason}).`)
process.exit(status ?? 1)
