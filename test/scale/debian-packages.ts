import { execFile } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { chmod, mkdir, readdir, writeFile } from 'node:fs/promises'
import { delimiter, join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { NotHere } from './part.js'

const run = promisify(execFile)
const PLACE = resolve('var/debian')
const PATIENCE = 120_000

/**
 * Makes sure that a program is on the PATH: where it is not installed, its packages are fetched and unpacked beside the
 * project's data, so that no service is started and no root is needed.
 */
export async function provide(program: string, packages: readonly string[]): Promise<string> {
  const found = onPath(program)
  if (found !== undefined) return found
  const wrapper = join(PLACE, 'bin', program)
  if (!existsSync(wrapper)) await fetch(program, packages, wrapper)
  process.env['PATH'] = `${join(PLACE, 'bin')}${delimiter}${process.env['PATH'] ?? ''}`
  return wrapper
}

function onPath(program: string): string | undefined {
  const folders = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin']
  return folders.map((folder) => join(folder, program)).find((path) => existsSync(path))
}

async function fetch(program: string, packages: readonly string[], wrapper: string): Promise<void> {
  console.log(`There is no ${program} on the PATH: fetching the packages ${packages.join(', ')} into ${PLACE}.`)
  const [debs, root] = [join(PLACE, program), join(PLACE, program, 'root')]
  try {
    for (const folder of ['state/lists/partial', 'cache/archives/partial', 'root']) {
      await mkdir(join(debs, folder), { recursive: true })
    }
    const own = [`Dir::State=${debs}/state`, 'Dir::State::status=/var/lib/dpkg/status', `Dir::Cache=${debs}/cache`]
    const options = ['-qq', ...own.flatMap((option) => ['-o', option])]
    await run('apt-get', [...options, 'update'], { cwd: debs, timeout: PATIENCE })
    await run('apt-get', [...options, 'download', ...packages], { cwd: debs, timeout: PATIENCE })
    for (const name of await readdir(debs)) {
      if (name.endsWith('.deb')) await run('dpkg-deb', ['-x', join(debs, name), root])
    }
    const path = ['usr/bin', 'usr/sbin'].map((folder) => join(root, folder, program)).find((each) => existsSync(each))
    if (path === undefined) throw new Error(`it is not in ${packages.join(', ')}`)
    await mkdir(join(PLACE, 'bin'), { recursive: true })
    await writeFile(wrapper, `#!/bin/sh\nLD_LIBRARY_PATH=${libraries(root).join(':')} exec ${path} "$@"\n`)
    await chmod(wrapper, 0o755)
  } catch (cause) {
    const [reason] = (cause instanceof Error ? cause.message : String(cause)).split('\n')
    throw new NotHere(`${program} is not installed, and cannot be fetched (${reason})`, { cause })
  }
}

function libraries(root: string): readonly string[] {
  return ['usr/lib', 'lib'].flatMap((folder) => {
    const path = join(root, folder)
    const names = existsSync(path) ? readdirSync(path) : []
    return names.filter((name) => name.endsWith('-linux-gnu')).map((name) => join(path, name))
  })
}
