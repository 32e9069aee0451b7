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
  console.error('The compiled program is missing: run "npm run build" first.')
  process.exit(1)
}

/** Content of a release. Compiled benchmarks and source maps, which name folders outside of it, are excluded. */
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
/** Files that a package does not need at run time. A folder "test" inside of its code may be needed. */
const EXCLUDED_FROM_PACKAGES =
  /\.(map|[cm]?ts|flow|tsbuildinfo)$|\.test\.|node_modules\/(@[^/]+\/)?[^/]+\/(tests?|examples?)$/
const EXCLUDED = /\.map$|\.tsbuildinfo$|dist[\\/]bench|dist[\\/]\.built$/

const folder = resolve(target)
const temporary = mkdtempSync(join(tmpdir(), 'pod-release-'))
// The SBOM contains the name of this folder.
const staging = join(temporary, 'diaspora-pod')
try {
  mkdirSync(folder, { recursive: true })
  mkdirSync(staging)
  for (const name of CONTENT) {
    cpSync(join(project, name), join(staging, name), {
      recursive: true,
      filter: (path) => !EXCLUDED.test(path.slice(project.length)),
    })
  }
  const lock = readJson('package-lock.json')
  const packages = Object.entries(lock.packages).filter(([path, { dev }]) => path !== '' && dev !== true)
  const bundled = packages.filter(([, { optional }]) => !optional)
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
  // The serial number and the time differ with each run.
  const { serialNumber: ____, ...bom } = JSON.parse(
    npm(['sbom', '--sbom-format', 'cyclonedx', '--package-lock-only', '--omit', 'dev']),
  )
  delete bom.metadata.timestamp
  writeDescription({
    dependencies: namedVersions(bundled),
    optionalDependencies: namedVersions(packages.filter(([, { optional }]) => optional)),
    bundleDependencies: Object.keys(namedVersions(bundled)),
  })
  for (const [path] of bundled) {
    cpSync(join(project, path), join(staging, path), {
      recursive: true,
      filter: (name) => !EXCLUDED_FROM_PACKAGES.test(name.slice(project.length)),
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

/** The commit, which the metrics of the release show. Empty without a repository. */
function readCommit() {
  try {
    return { gitHead: execFileSync('git', ['rev-parse', 'HEAD'], { cwd: project, encoding: 'utf8' }).trim() }
  } catch {
    return {}
  }
}

/**
 * npm ignores shrinkwrap and overrides of a package that is installed from a file. So a release contains the packages for all
 * platforms, and names the versions of the others, which npm chooses by platform.
 */
function namedVersions(packages) {
  const named = packages.map(([path, { version }]) => [path.replace('node_modules/', ''), version])
  return Object.fromEntries(named.filter(([name]) => !name.includes('node_modules/')))
}

/** Signs a file. The namespace prevents the use of signatures that were made for another purpose. */
function sign(path, privateKey) {
  rmSync(`${path}.sig`, { force: true })
  execFileSync('ssh-keygen', ['-q', '-Y', 'sign', '-f', privateKey, '-n', 'diaspora-pod', path], { stdio: 'inherit' })
}

function npm(args) {
  return execFileSync('npm', args, {
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
