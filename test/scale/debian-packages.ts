import { execFile } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { chmod, mkdir, readdir, writeFile } from 'node:fs/promises'
import { delimiter, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { NotAvailable } from './part.js'

const run = promisify(execFile)
const FOLDER = resolve('var/debian')
const TIMEOUT_MS = 120_000

/**
 * Ensures that a program is on the PATH. If it is not installed, its packages are downloaded and unpacked into `var/debian`, which
 * starts no service and needs no root.
 */
export async function ensureProgram(program: string, packages: readonly string[]): Promise<string> {
  const found = findOnPath(program)
  if (found !== undefined) return found
  const wrapper = join(FOLDER, 'bin', program)
  if (!existsSync(wrapper)) await downloadPackages(program, packages, wrapper)
  process.env['PATH'] = `${join(FOLDER, 'bin')}${delimiter}${process.env['PATH'] ?? ''}`
  return wrapper
}

function findOnPath(program: string): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin']
  return folders.map((folder) => join(folder, program)).find((path) => existsSync(path))
}

async function downloadPackages(program: string, packages: readonly string[], wrapper: string): Promise<void> {
  console.log(`${program} is not on the PATH: downloading the packages ${packages.join(', ')} into ${FOLDER}.`)
  const [debs, root] = [join(FOLDER, program), join(FOLDER, program, 'root')]
  try {
    for (const folder of ['state/lists/partial', 'cache/archives/partial', 'root']) {
      await mkdir(join(debs, folder), { recursive: true })
    }
    const folders = [`Dir::State=${debs}/state`, 'Dir::State::status=/var/lib/dpkg/status', `Dir::Cache=${debs}/cache`]
    const options = ['-qq', ...folders.flatMap((option) => ['-o', option])]
    await run('apt-get', [...options, 'update'], { cwd: debs, timeout: TIMEOUT_MS })
    await run('apt-get', [...options, 'download', ...packages], { cwd: debs, timeout: TIMEOUT_MS })
    for (const name of await readdir(debs)) {
      if (name.endsWith('.deb')) await run('dpkg-deb', ['-x', join(debs, name), root])
    }
    const path = ['usr/bin', 'usr/sbin'].map((folder) => join(root, folder, program)).find((each) => existsSync(each))
    if (path === undefined) throw new Error(`the program is not in ${packages.join(', ')}`)
    await mkdir(join(FOLDER, 'bin'), { recursive: true })
    await writeFile(wrapper, `#!/bin/sh\nLD_LIBRARY_PATH=${libraries(root).join(':')} exec ${path} "$@"\n`)
    await chmod(wrapper, 0o755)
  } catch (cause) {
    const [reason] = (cause instanceof Error ? cause.message : String(cause)).split('\n')
    throw new NotAvailable(`${program} is not installed, and cannot be downloaded (${reason})`, { cause })
  }
}

function libraries(root: string): readonly string[] {
  return ['usr/lib', 'lib'].flatMap((folder) => {
    const path = join(root, folder)
    const names = existsSync(path) ? readdirSync(path) : []
    return names.filter((name) => name.endsWith('-linux-gnu')).map((name) => join(path, name))
  })
}
