// Makes the files of a release in a folder: the package, its list of parts (SBOM) and their checksums. The same commit gives the
// same bytes. With a key of ssh-keygen the checksums are signed. Run "npm ci" and "npm run build" before.
//
//   node scripts/make-release.mjs <folder> [--sign <private key>]

import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const project = resolve(import.meta.dirname, '..')
const [, , target, option, key] = process.argv
if (target === undefined || (option !== undefined && (option !== '--sign' || key === undefined))) {
  console.error('Usage: node scripts/make-release.mjs <folder> [--sign <private key>]')
  process.exit(2)
}
if (!existsSync(join(project, 'dist/bin/pod.js'))) {
  console.error('There is no compiled program: run "npm run build" first.')
  process.exit(1)
}

/** What a release contains; compiled benchmarks and source maps, which name folders outside of it, are left out. */
const CONTENT = [
  'dist',
  'deploy',
  'docs',
  'src/web/assets',
  'CHANGELOG.md',
  'FEDERATION.md',
  'LICENSE',
  'README.md',
  'SECURITY.md',
  '.env.example',
]
/** It is in the release with its own dependencies: one has an override, which npm ignores in a package that is a dependency. */
const BUNDLED = '@fastify/swagger-ui'
const LEFT_OUT_OF_PACKAGES = /\.map$|\.test\.|[\\/]tests?$/
const LEFT_OUT = /\.map$|\.tsbuildinfo$|dist[\\/]bench|dist[\\/]\.built$/

const folder = resolve(target)
const temporary = mkdtempSync(join(tmpdir(), 'pod-release-'))
// The list of parts names this folder.
const staging = join(temporary, 'diaspora-pod')
try {
  mkdirSync(folder, { recursive: true })
  mkdirSync(staging)
  for (const name of CONTENT) {
    cpSync(join(project, name), join(staging, name), {
      recursive: true,
      filter: (path) => !LEFT_OUT.test(path.slice(project.length)),
    })
  }
  const lock = readJson('package-lock.json')
  const packages = Object.entries(lock.packages).filter(([path, { dev }]) => path !== '' && dev !== true)
  const bundled = pathsOf(BUNDLED, lock.packages)
  const named = namedVersions(packages, bundled, lock.packages[''].dependencies)
  const { devDependencies: _, scripts, private: __, allowScripts, ...description } = readJson('package.json')
  const { devDependencies: ___, ...root } = lock.packages['']
  const commit = readCommit()
  const writeDescription = (more) => {
    const files = [...CONTENT, 'npm-shrinkwrap.json']
    writeJson('package.json', {
      ...description,
      ...more,
      ...commit,
      scripts: { start: scripts.start },
      allowScripts,
      files,
    })
    const all = { '': { ...root, ...more }, ...Object.fromEntries(packages) }
    writeJson('npm-shrinkwrap.json', { ...lock, packages: all })
  }

  writeDescription({})
  // Its number and time would differ with each run.
  const { serialNumber: ____, ...bom } = JSON.parse(
    npm(['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only', '--omit', 'dev']),
  )
  delete bom.metadata.timestamp
  writeDescription({ ...named, bundleDependencies: [BUNDLED] })
  for (const path of bundled) {
    cpSync(join(project, path), join(staging, path), {
      recursive: true,
      filter: (name) => !LEFT_OUT_OF_PACKAGES.test(name.slice(project.length)),
    })
  }
  const [packed] = JSON.parse(npm(['pack', '--json', '--ignore-scripts', '--pack-destination', folder]))
  const sbom = packed.filename.replace(/\.tgz$/, '.cdx.json')
  writeFileSync(join(folder, sbom), `${JSON.stringify(bom, null, 1)}\n`)
  const files = [packed.filename, sbom].sort()
  writeFileSync(join(folder, 'SHA256SUMS'), files.map((name) => `${sha256(join(folder, name))}  ${name}\n`).join(''))
  if (key !== undefined) sign(join(folder, 'SHA256SUMS'), resolve(key))
  for (const name of readdirSync(folder)) console.log(join(folder, name))
} finally {
  rmSync(temporary, { recursive: true, force: true })
}

/** Shown by the metrics of the release. Without a repository it is left out. */
function readCommit() {
  try {
    return { gitHead: execFileSync('git', ['rev-parse', 'HEAD'], { cwd: project, encoding: 'utf8' }).trim() }
  } catch {
    return {}
  }
}

/** npm ignores the shrinkwrap of a package that is a file. So the package itself names the tested version of all others. */
function namedVersions(packages, bundled, direct) {
  const dependencies = {}
  const optionalDependencies = {}
  for (const [path, { version, optional }] of packages) {
    const [, name, nested] = path.split('node_modules/')
    if (nested !== undefined || (bundled.has(path) && !(name in direct))) continue
    if (optional) optionalDependencies[name] = version
    else dependencies[name] = version
  }
  return { dependencies, optionalDependencies }
}

/** The folders of a package and of all that it depends on, as the lock file resolves them. */
function pathsOf(name, packages) {
  const found = new Set()
  const add = (path) => {
    if (found.has(path)) return
    found.add(path)
    for (const dependency of Object.keys(packages[path].dependencies ?? {})) add(resolvePath(path, dependency))
  }
  const resolvePath = (from, dependency) => {
    const path = `${from === '' ? '' : `${from}/`}node_modules/${dependency}`
    if (path in packages) return path
    if (from === '') throw new Error(`The lock file lacks ${dependency}.`)
    return resolvePath(from.slice(0, Math.max(0, from.lastIndexOf('/node_modules/'))), dependency)
  }
  add(`node_modules/${name}`)
  return found
}

/** The namespace keeps a signature for another purpose from being one of a release. */
function sign(path, privateKey) {
  rmSync(`${path}.sig`, { force: true })
  execFileSync('ssh-keygen', ['-q', '-Y', 'sign', '-f', privateKey, '-n', 'diaspora-pod', path], { stdio: 'inherit' })
}

function npm(words) {
  return execFileSync('npm', words, {
    cwd: staging,
    encoding: 'utf8',
    maxBuffer: 64 * 2 ** 20,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
}

function readJson(name) {
  return JSON.parse(readFileSync(join(project, name), 'utf8'))
}

function writeJson(name, value) {
  writeFileSync(join(staging, name), `${JSON.stringify(value, null, 2)}\n`)
}

function sha256(path) {
  return createHash('sha256').update(readFileSync(path)).digest('hex')
}
