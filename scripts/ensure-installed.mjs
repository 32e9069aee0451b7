// Installs and builds what is missing, before `npm start`, `npm test` and `npm run dev`. It needs nothing but Node, and its
// syntax also runs on a Node that is too old, so that it can report this.
import { spawn } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'

const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)))
const LOCK = path.join(root, '.installing')
const SOURCES = ['src', 'workers', 'migrations', 'bin', 'bench', 'embedded-postgres']
const INSTALLED = path.join(root, 'node_modules', '.package-lock.json')
const BUILT = path.join(root, 'dist', '.built')
const POLL_MS = 100

main().catch((error) => {
  console.error(error.message)
  process.exitCode = 1
})

async function main() {
  checkNode()
  if (isComplete()) return
  await takeLock()
  try {
    if (!isInstalled()) await install()
    if (!isBuilt()) await build()
  } finally {
    releaseLock()
  }
}

function isComplete() {
  return isInstalled() && isBuilt()
}

function checkNode() {
  const wanted = readJson('package.json').engines.node.replace('>=', '')
  const [major, minor] = wanted.split('.').map(Number)
  const [ownMajor, ownMinor] = process.versions.node.split('.').map(Number)
  if (ownMajor > major || (ownMajor === major && ownMinor >= minor)) return
  throw new Error(
    `This pod needs Node ${wanted} or newer, and this is Node ${process.versions.node}: install a newer one from https://nodejs.org and try again.`,
  )
}

/** npm writes this file last, so that it is missing after an interrupted installation. */
function isInstalled() {
  if (timeOf(INSTALLED) >= timeOf(path.join(root, 'package-lock.json'))) return true
  if (!fs.existsSync(INSTALLED) || !matchesLockFile()) return false
  // The lock file was only touched, for example by a checkout. The modules stay, because a pod may be running.
  fs.utimesSync(INSTALLED, new Date(), new Date())
  return true
}

function matchesLockFile() {
  const wanted = readJson('package-lock.json').packages
  const present = readJson('node_modules/.package-lock.json').packages
  const names = Object.keys(wanted).filter((name) => name !== '')
  return (
    names.every((name) =>
      present[name] ? isSameRelease(wanted[name], present[name]) : wanted[name].optional && !wanted[name].link,
    ) && Object.keys(present).every((name) => wanted[name])
  )
}

function isSameRelease(one, other) {
  return ['version', 'resolved', 'integrity'].every(
    (field) => !one[field] || !other[field] || one[field] === other[field],
  )
}

/** The time of a folder changes when files in it are removed or renamed. */
function isBuilt() {
  const built = timeOf(BUILT)
  return (
    SOURCES.every((name) => newestIn(path.join(root, name)) <= built) &&
    timeOf(path.join(root, 'tsconfig.json')) <= built
  )
}

async function install() {
  console.log('Installing what is missing (npm ci) ...')
  fs.rmSync(INSTALLED, { force: true })
  await npm(
    ['ci', '--include=dev', '--no-audit', '--no-fund'],
    'Installing failed: see the output of npm above, and try again.',
  )
}

async function build() {
  console.log('Building ...')
  const startedAt = new Date()
  // The types of a fresh clone are those of a commit that was checked. Their check would take five times as long as all the rest.
  const options = fs.existsSync(path.join(root, 'dist')) ? [] : ['--', '--noCheck']
  // After an interrupted or failed build, the incremental state of the compiler may be wrong.
  if (!fs.existsSync(BUILT)) fs.rmSync(path.join(root, 'dist', '.tsbuildinfo'), { force: true })
  fs.rmSync(BUILT, { force: true })
  await npm(
    ['run', '--silent', 'build', ...options],
    'Building failed: see the output of the compiler above, and try again.',
  )
  for (const name of SOURCES) removeOrphans(name)
  fs.writeFileSync(BUILT, '')
  // Files that have changed during the build are built the next time.
  fs.utimesSync(BUILT, startedAt, startedAt)
}

/** The compiler does not delete the output of deleted sources. */
function removeOrphans(folder) {
  for (const entry of entriesOf(path.join(root, 'dist', folder))) {
    const name = path.join(folder, entry.name)
    if (entry.isDirectory()) removeOrphans(name)
    else if (!fs.existsSync(path.join(root, name.replace(/\.js(\.map)?$/, '.ts'))))
      fs.rmSync(path.join(root, 'dist', name))
  }
}

/** Runs npm: the one that runs this script, if there is one. */
function npm(args, errorText) {
  const own = process.env.npm_execpath
  const [program, first] = own && /npm-cli\.[cm]?js$/.test(own) ? [process.execPath, [own]] : ['npm', []]
  return new Promise((resolve, reject) => {
    const child = spawn(program, [...first, ...args], {
      cwd: root,
      stdio: 'inherit',
      shell: process.platform === 'win32',
    })
    // npm continues when this process is killed, and no other process may begin before it has ended.
    if (child.pid) fs.writeFileSync(LOCK, `${process.pid} ${child.pid}`)
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
    child.once('error', (error) => reject(new Error(`${errorText} (${error.message})`)))
    child.once('exit', (code) => (code === 0 ? resolve() : reject(new Error(errorText))))
  })
}

/** Takes the lock of this folder, because two processes would delete the files of each other. */
async function takeLock() {
  let isReported = false
  while (!tryLock()) {
    const owners = readOwners()
    if (owners.length > 0 && !owners.some(isAlive)) removeStaleLock(owners)
    else if (owners.length > 0 && !isReported) {
      console.log(
        `Waiting for process ${owners[0]}, which is installing or building here (if it is not, delete .installing) ...`,
      )
      isReported = true
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

/** The file appears with its content, so that no process reads an empty one. */
function tryLock() {
  const draft = `${LOCK}.${process.pid}`
  fs.writeFileSync(draft, String(process.pid))
  try {
    fs.linkSync(draft, LOCK)
    return true
  } catch (error) {
    if (error.code === 'EEXIST') return false
    throw error
  } finally {
    fs.unlinkSync(draft)
  }
}

/** Only one of the waiting processes can move the file away. A process that has moved the file of another one puts it back. */
function removeStaleLock(owners) {
  const aside = `${LOCK}.${process.pid}`
  try {
    fs.renameSync(LOCK, aside)
    if (readOwners(aside).join() !== owners.join()) fs.linkSync(aside, LOCK)
    fs.unlinkSync(aside)
  } catch (error) {
    if (error.code !== 'ENOENT' && error.code !== 'EEXIST') throw error
  }
}

function releaseLock() {
  if (readOwners()[0] === process.pid) fs.unlinkSync(LOCK)
}

/** Ids of the process that has the lock, and of its npm. */
function readOwners(file = LOCK) {
  try {
    return fs.readFileSync(file, 'utf8').split(' ').filter(Boolean).map(Number)
  } catch (error) {
    if (error.code === 'ENOENT') return []
    throw error
  }
}

function isAlive(pid) {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return error.code === 'EPERM'
  }
}

function newestIn(folder) {
  const times = entriesOf(folder).map((entry) => {
    const name = path.join(folder, entry.name)
    return entry.isDirectory() ? newestIn(name) : timeOf(name)
  })
  return Math.max(timeOf(folder), ...times)
}

function entriesOf(folder) {
  return fs.existsSync(folder) ? fs.readdirSync(folder, { withFileTypes: true }) : []
}

function timeOf(file) {
  try {
    return fs.statSync(file).mtimeMs
  } catch (error) {
    if (error.code === 'ENOENT') return 0
    throw error
  }
}

function readJson(name) {
  return JSON.parse(fs.readFileSync(path.join(root, name), 'utf8'))
}
