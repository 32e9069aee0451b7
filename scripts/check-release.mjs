// Makes a release twice, compares both, installs it into an empty folder as an operator does, compares the packages with the list of
// parts (SBOM), starts the pod with npx, signs up, posts, and stops it. Needs the npm registry. Run "npm run build" before.
//
//   node scripts/check-release.mjs

import { execFile, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { promisify } from 'node:util'

const project = resolve(import.meta.dirname, '..')
const folder = mkdtempSync(join(tmpdir(), 'pod-check-release-'))
/** Time limit of the start, which installs the package, and of a command. */
const STEP_LIMIT_MS = 300_000
/** Time before a form is sent. The pod refuses forms that are sent too fast. */
const FORM_MS = 4_000
/** Environment of child processes, without the settings of the caller. */
const environment = { PATH: process.env.PATH, HOME: process.env.HOME, LANG: 'C.UTF-8' }

try {
  const releases = ['first', 'second'].map((name) => makeRelease(join(folder, name)))
  const [first, second] = releases.map((path) => readFileSync(join(path, 'SHA256SUMS'), 'utf8'))
  check(first === second, 'two releases of the same commit have the same bytes')
  const [release] = releases
  verifySignature(release)

  const empty = join(folder, 'empty')
  mkdirSync(empty)
  const tarball = readdirSync(release).find((name) => name.endsWith('.tgz'))
  cpSync(join(release, tarball), join(empty, tarball))
  comparePackages(release, tarball)
  await startWithNpx(empty, tarball)
  console.log('The release is correct.')
} finally {
  rmSync(folder, { recursive: true, force: true })
}

function makeRelease(path) {
  const key = join(folder, 'key')
  if (!existsSync(key)) run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-C', 'release', '-f', key], folder)
  run('node', [join(project, 'scripts/make-release.mjs'), path, '--sign', key], project)
  return path
}

function verifySignature(release) {
  const [type, key] = readFileSync(join(folder, 'key.pub'), 'utf8').split(' ')
  const signers = join(folder, 'allowed-signers')
  execFileSync('sh', ['-c', `echo 'release ${type} ${key}' > "$0"`, signers])
  const verify = (input) =>
    execFileSync(
      'ssh-keygen',
      ['-Y', 'verify', '-f', signers, '-I', 'release', '-n', 'diaspora-pod', '-s', join(release, 'SHA256SUMS.sig')],
      { input, stdio: ['pipe', 'pipe', 'ignore'] },
    )
  const sums = readFileSync(join(release, 'SHA256SUMS'))
  verify(sums)
  let isRefused = false
  try {
    verify(`${sums}x`)
  } catch {
    isRefused = true
  }
  check(isRefused, 'the signature is of SHA256SUMS alone')
}

/** Compares the packages that npm installs with those that the release lists, which may be for other platforms too. */
function comparePackages(release, tarball) {
  const place = join(folder, 'installed')
  mkdirSync(place)
  run('npm', ['install', '--no-audit', '--no-fund', '--loglevel=error', join(release, tarball)], place)
  const root = join(place, 'node_modules/diaspora-pod')
  const { packages } = JSON.parse(readFileSync(join(root, 'npm-shrinkwrap.json'), 'utf8'))
  const bom = JSON.parse(readFileSync(join(release, tarball.replace(/\.tgz$/, '.cdx.json')), 'utf8'))
  const listed = new Set(
    bom.components.map(({ group, name, version }) => `${group ? `${group}/` : ''}${name}@${version}`),
  )
  const installed = new Set(installedPackages(place))
  check(
    [...installed].every((name) => listed.has(name)),
    `every installed package is listed: ${[...installed].filter((name) => !listed.has(name))}`,
  )
  const missing = Object.entries(packages)
    .filter(([path, { optional, peer }]) => path !== '' && !optional && !peer)
    .map(([path, { version }]) => `${path.split('node_modules/').at(-1)}@${version}`)
    .filter((name) => !installed.has(name))
  check(missing.length === 0, `every listed package is installed, except those of other platforms: ${missing}`)
  check(
    [...installed].every((name) => !/^(vitest|typescript|knip|@biomejs\/biome)@/.test(name)),
    'no package for development is installed',
  )
}

/** The installed packages. Not from "npm ls", which fails for a package with an overridden version. */
function installedPackages(place) {
  return JSON.parse(run('npm', ['query', '*', '--loglevel=silent'], place))
    .filter(({ location, name }) => location !== '' && name !== 'diaspora-pod')
    .map(({ name, version }) => `${name}@${version}`)
}

async function startWithNpx(place, tarball) {
  const env = { ...environment, PORT: '0', ADMIN_LISTEN: '' }
  const child = spawn('npx', ['--yes', `./${tarball}`, 'start'], {
    cwd: place,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
    detached: true,
  })
  const ended = once(child, 'exit')
  try {
    const address = await addressOf(child)
    const cookie = await signUp(address)
    check((await fetch(`${address}/`, { headers: { cookie } })).status < 400, 'the start page is shown')
    check(await post(place, tarball, address), 'a post is stored')
  } finally {
    // Like Ctrl-C in a terminal: npm forwards no other signal to the pod.
    if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid, 'SIGINT')
    await ended
  }
  check(await isStopped(join(place, 'var/postgres/postmaster.pid')), 'Ctrl-C stops the pod and its database')
}

async function isStopped(pidFile) {
  for (let attempt = 0; attempt < 300; attempt += 1) {
    if (!existsSync(pidFile)) return true
    await pause(100)
  }
  return false
}

function addressOf(child) {
  let text = ''
  return new Promise((resolve, reject) => {
    const fail = (reason) => reject(new Error(`The pod ${reason}:\n${text}`))
    const timer = setTimeout(fail, STEP_LIMIT_MS, 'has not started in time')
    child.stdout.setEncoding('utf8').on('data', (chunk) => {
      text += chunk
      const [, address] = /is running at (http:\/\/\S+)/.exec(text) ?? []
      if (address === undefined) return
      clearTimeout(timer)
      resolve(address)
    })
    child.once('exit', () => {
      clearTimeout(timer)
      fail('has not started')
    })
  })
}

/** Signs up like a browser without JavaScript. Returns the session cookie. */
async function signUp(address) {
  const page = await fetch(`${address}/users/sign_up`)
  const html = await page.text()
  const fields = new URLSearchParams()
  for (const [, name, value] of html.matchAll(/<input[^>]*type="hidden"[^>]*name="([^"]+)"[^>]*value="([^"]*)"/g)) {
    fields.set(name, value)
  }
  for (const name of ['password', 'password_again']) fields.set(name, 'correct horse battery')
  fields.set('username', 'alice')
  const cookie = page.headers
    .getSetCookie()
    .map((each) => each.split(';')[0])
    .join('; ')
  await pause(FORM_MS)
  const response = await fetch(`${address}/users/sign_up`, {
    method: 'POST',
    body: fields,
    redirect: 'manual',
    headers: { cookie, origin: address },
  })
  check(response.status === 303 || response.status === 302, `sign-up succeeds (status ${response.status})`)
  return response.headers
    .getSetCookie()
    .map((each) => each.split(';')[0])
    .join('; ')
}

async function post(place, tarball, address) {
  const args = ['--yes', `./${tarball}`, 'token', 'alice', '--scopes', 'public:read public:modify', '--json']
  // Not execFileSync, because fetch must notice that the pod closes idle connections in the meantime.
  const options = { cwd: place, env: environment, encoding: 'utf8', timeout: STEP_LIMIT_MS }
  const { stdout } = await promisify(execFile)('npx', args, options)
  const { access_token: token } = JSON.parse(stdout)
  const response = await fetch(`${address}/api/v1/posts`, {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ body: 'Written on a new pod', public: true }),
  })
  return response.status === 200
}

function run(program, args, cwd) {
  return execFileSync(program, args, { cwd, env: environment, encoding: 'utf8', maxBuffer: 64 * 2 ** 20 })
}

function check(isTrue, statement) {
  if (!isTrue) throw new Error(`Not true: ${statement}`)
  console.log(`ok: ${statement.split(':')[0]}`)
}
