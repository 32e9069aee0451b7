import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const GEMFILE = join(ROOT, 'test/interop/Gemfile')
/** Folder inside of the project, so that nothing is installed for the whole machine. */
const GEM_FOLDER = join(ROOT, 'var/gems')
/** Long, because nokogiri may have to be compiled. */
const INSTALL_TIMEOUT_MS = 8 * 60_000

export type Gems = { readonly isInstalled: true } | { readonly isInstalled: false; readonly reason: string }

/** Environment in which Bundler and Ruby find the gems of the lock file. */
export function gemEnvironment(): Readonly<Record<string, string>> {
  return {
    BUNDLE_GEMFILE: GEMFILE,
    BUNDLE_PATH: GEM_FOLDER,
    BUNDLE_FROZEN: 'true',
    BUNDLE_DISABLE_SHARED_GEMS: 'true',
    BUNDLE_SILENCE_ROOT_WARNING: 'true',
    // A folder without settings: those of the user must not move the gems elsewhere.
    BUNDLE_APP_CONFIG: join(GEM_FOLDER, 'settings'),
  }
}

/** Installs the gems of the lock file where they are missing. */
export function installGems(): Gems {
  if (!canRun('ruby', '--version')) return { isInstalled: false, reason: 'Ruby is not on the PATH' }
  if (!canRun('bundle', '--version')) return { isInstalled: false, reason: 'Bundler is not on the PATH' }
  if (existsSync(GEM_FOLDER) && canRun('bundle', 'check')) return { isInstalled: true }
  console.log(`Installing the gems of ${GEMFILE} into ${GEM_FOLDER} …`)
  const { status, stdout, stderr } = spawnSync('bundle', ['install', '--quiet'], {
    env: { ...process.env, ...gemEnvironment() },
    encoding: 'utf8',
    timeout: INSTALL_TIMEOUT_MS,
  })
  if (status === 0) return { isInstalled: true }
  console.error(`${stdout}${stderr}`)
  return { isInstalled: false, reason: 'the gems could not be installed, see above' }
}

function canRun(program: string, ...args: readonly string[]): boolean {
  return spawnSync(program, args, { env: { ...process.env, ...gemEnvironment() }, stdio: 'ignore' }).status === 0
}
