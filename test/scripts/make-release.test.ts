import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'

const project = fileURLToPath(new URL('../..', import.meta.url))

interface Lock {
  readonly packages: Readonly<Record<string, { readonly version: string; readonly dev?: true }>>
}

interface Bom {
  readonly components: readonly { readonly group?: string; readonly name: string; readonly version: string }[]
}

/** Needs the compiled program. */
describe('a release', { timeout: 240_000 }, () => {
  let folder: string
  let unpacked: string
  const make = (name: string) =>
    execFileSync('node', [join(project, 'scripts/make-release.mjs'), join(folder, name)], { stdio: 'pipe' })
  beforeAll(() => {
    folder = mkdtempSync(join(tmpdir(), 'pod-release-test-'))
    make('first')
    unpacked = join(folder, 'package')
    execFileSync('tar', ['xzf', join(folder, 'first', fileNamed('.tgz')), '-C', folder])
  }, 240_000)
  afterAll(() => rmSync(folder, { recursive: true }))

  const fileNamed = (end: string) => readdirSync(join(folder, 'first')).find((name) => name.endsWith(end)) ?? ''
  const readJson = <Content>(path: string): Content => JSON.parse(readFileSync(join(folder, path), 'utf8'))
  const filesOf = (path: string) =>
    readdirSync(path, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(unpacked.length + 1))

  it('has the program, its documents and its licences, but no tests, settings, source maps or folders of its maker', () => {
    const files = filesOf(unpacked)

    expect(files).toEqual(
      expect.arrayContaining([
        ...['LICENSE', 'README.md', 'CHANGELOG.md', '.env.example', 'npm-shrinkwrap.json', 'docs/licences.md'],
        ...['dist/bin/pod.js', 'dist/src/server.js', 'dist/workers/main.js', 'deploy/Dockerfile', 'docs/operating.md'],
      ]),
    )
    expect(files.filter((file) => /\.map$|^dist\/(bench|test)|\.test\.|^\.env$|^var\//.test(file))).toEqual([])
    for (const file of files.filter((name) => /\.(js|json)$/.test(name))) {
      expect({ file, found: readFileSync(join(unpacked, file), 'utf8').includes(project) }).toEqual({
        file,
        found: false,
      })
    }
  })

  it('has the same files as a package that npm makes of a checkout, but for its packages', () => {
    const words = ['pack', '--dry-run', '--json', '--ignore-scripts', '--loglevel=silent']
    const [packed] = JSON.parse(execFileSync('npm', words, { cwd: project, encoding: 'utf8' }))
    const names: readonly string[] = packed.files.map(({ path }: { readonly path: string }) => path)

    const own = filesOf(unpacked).filter((file) => !/^(node_modules\/|npm-shrinkwrap.json)/.test(file))
    expect(names.toSorted()).toEqual(own.toSorted())
  })

  it('runs, and prints its version', () => {
    symlinkSync(join(project, 'node_modules'), join(folder, 'node_modules'))
    const { version } = readJson<{ version: string }>('package/package.json')

    expect(execFileSync('node', [join(unpacked, 'dist/bin/pod.js'), '--version'], { encoding: 'utf8' })).toBe(
      `${version}\n`,
    )
    rmSync(join(folder, 'node_modules'))
  })

  it('installs exactly the packages of its list of parts, and none for development', () => {
    const { packages } = readJson<Lock>('package/npm-shrinkwrap.json')
    const { components } = readJson<Bom>(`first/${fileNamed('.cdx.json')}`)
    const installed = Object.entries(packages)
      .filter(([path]) => path !== '')
      .map(([path, { version }]) => `${path.split('node_modules/').at(-1)} ${version}`)
    const listed = components.map(({ group, name, version }) => `${group ? `${group}/` : ''}${name} ${version}`)

    expect(Object.values(packages).filter(({ dev }) => dev)).toEqual([])
    expect(installed.filter((name) => /^(vitest|typescript|knip) /.test(name))).toEqual([])
    expect([...new Set(listed)].sort()).toEqual([...new Set(installed)].sort())
  })

  it('has the same bytes when it is made again, with right checksums', () => {
    make('second')
    const sums = readFileSync(join(folder, 'first/SHA256SUMS'), 'utf8')

    expect(readFileSync(join(folder, 'second/SHA256SUMS'), 'utf8')).toBe(sums)
    for (const [, sum, name = ''] of sums.matchAll(/^(\S+) {2}(\S+)$/gm)) {
      expect(
        createHash('sha256')
          .update(readFileSync(join(folder, 'first', name)))
          .digest('hex'),
      ).toBe(sum)
    }
    expect(sums.trim().split('\n')).toHaveLength(2)
  })
})
