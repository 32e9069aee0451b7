import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, readdir, readFile, rm, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { filesOf, lockFile, manifest } from './compiler-project.js'
import { makeProject, run, write } from './project.js'

async function makeInstalled(): Promise<string> {
  const project = await makeProject(filesOf('1.0.0'))
  expect(await ensureInstalled(project)).toMatchObject({ code: 0 })
  return project
}

function ensureInstalled(project: string, nodeOptions: readonly string[] = []) {
  return run(project, 'ensure-installed.mjs', nodeOptions).ended
}

/** As if it had been changed a minute after everything that has been done so far. */
async function touch(project: string, name: string): Promise<void> {
  const later = new Date(Date.now() + 60_000)
  await utimes(join(project, name), later, later)
}

async function pidOfTheDead(): Promise<number> {
  const child = spawn('true')
  await once(child, 'exit')
  return child.pid ?? 0
}

describe('ensure-installed', () => {
  it('installs and builds in a bare clone, and prints nothing the next time', async () => {
    const project = await makeProject(filesOf('1.0.0'))

    const first = await ensureInstalled(project)
    const second = await ensureInstalled(project)

    expect(first.output).toMatch(/^Installing [\s\S]*\nBuilding /)
    expect(await readFile(join(project, 'dist/src/pod.js'), 'utf8')).toBe('one')
    expect(second).toEqual({ code: 0, output: '' })
    expect(await readdir(project)).not.toContain('.installing')
  })

  it('builds again after a change, and removes the output of deleted sources', async () => {
    const project = await makeInstalled()
    await write(project, 'src/later.ts', 'two')
    await touch(project, 'src/later.ts')
    await rm(join(project, 'src/pod.ts'))

    const { code, output } = await ensureInstalled(project)

    expect({ code, output }).toEqual({ code: 0, output: 'Building ...' })
    expect(await readdir(join(project, 'dist/src'))).toEqual(['later.js'])
  })

  it('leaves out the check of types for a bare clone, and not for sources that were changed or did not compile', async () => {
    const project = await makeProject({ ...filesOf('1.0.0'), 'src/pod.ts': 'a mistake' })
    const optionsOf = async () => JSON.parse(await readFile(join(project, 'dist/arguments.json'), 'utf8'))

    expect(await ensureInstalled(project)).toMatchObject({ code: 1 })
    expect(await optionsOf()).toEqual(['--noCheck'])
    await write(project, 'src/pod.ts', 'one')
    expect(await ensureInstalled(project)).toMatchObject({ code: 0 })
    expect(await optionsOf()).toEqual([])
    await touch(project, 'src/pod.ts')
    expect(await ensureInstalled(project)).toMatchObject({ code: 0 })
    expect(await optionsOf()).toEqual([])
  })

  it('installs again when the lock file has other releases, and not when it was only touched', async () => {
    const project = await makeInstalled()

    await touch(project, 'package-lock.json')
    const touched = await ensureInstalled(project)
    await write(project, 'package.json', JSON.stringify(manifest('1.1.0')))
    await write(project, 'package-lock.json', JSON.stringify(lockFile('1.1.0')))
    await touch(project, 'package-lock.json')
    const changed = await ensureInstalled(project)

    expect(touched).toEqual({ code: 0, output: '' })
    expect(changed.output).toContain('Installing')
    expect(changed.code).toBe(0)
  })

  it('installs again after an installation that was interrupted', async () => {
    const project = await makeInstalled()
    await rm(join(project, 'node_modules/.package-lock.json'))

    expect(await ensureInstalled(project)).toMatchObject({ code: 0, output: expect.stringContaining('Installing') })
  })

  it('ends with a sentence when building fails, and tries again until it succeeds', async () => {
    const project = await makeInstalled()
    await write(project, 'src/pod.ts', 'a mistake')
    await touch(project, 'src/pod.ts')

    const failed = await ensureInstalled(project)
    await utimes(join(project, 'src/pod.ts'), new Date(0), new Date(0))
    const again = await ensureInstalled(project)
    await write(project, 'src/pod.ts', 'three')
    const repaired = await ensureInstalled(project)

    expect(failed).toMatchObject({
      code: 1,
      output: expect.stringMatching(/mistake in pod.ts\nBuilding failed: .*\.$/),
    })
    expect(again).toMatchObject({ code: 1 })
    expect(repaired).toEqual({ code: 0, output: 'Building ...' })
    expect(await readFile(join(project, 'dist/src/pod.js'), 'utf8')).toBe('three')
  })

  it('ends with a sentence when installing fails', async () => {
    const project = await makeProject({ ...filesOf('1.0.0'), 'package-lock.json': '{}' })

    const { code, output } = await ensureInstalled(project)

    expect(code).toBe(1)
    expect(output).toMatch(/\nInstalling failed: .*\.$/)
    expect(await readdir(project)).not.toContain('.installing')
  })

  it('lets one of several work and the others wait', async () => {
    const project = await makeProject(filesOf('1.0.0'))

    const runs = await Promise.all([1, 2, 3].map(() => ensureInstalled(project)))

    expect(runs.map(({ code }) => code)).toEqual([0, 0, 0])
    expect(runs.filter(({ output }) => output.includes('Installing'))).toHaveLength(1)
    expect(runs.filter(({ output }) => output.includes('Building'))).toHaveLength(1)
  })

  it('replaces a process that has ended', async () => {
    const project = await makeProject({ ...filesOf('1.0.0'), '.installing': String(await pidOfTheDead()) })

    expect(await ensureInstalled(project)).toMatchObject({ code: 0, output: expect.stringContaining('Installing') })
  })

  it('waits for the npm of a process that has ended', async () => {
    const npm = spawn('sleep', ['60'])
    onTestFinished(() => {
      npm.kill()
    })
    const project = await makeProject({ ...filesOf('1.0.0'), '.installing': `${await pidOfTheDead()} ${npm.pid}` })

    const waiting = run(project, 'ensure-installed.mjs')
    await waiting.line(/^Waiting for process \d+, .*delete \.installing/)
    await expect(access(join(project, 'node_modules'))).rejects.toThrow('ENOENT')
    npm.kill()

    expect(await waiting.ended).toMatchObject({ code: 0, output: expect.stringContaining('Installing') })
  })

  it('requires a newer Node in one sentence before anything else', async () => {
    const project = await makeProject(filesOf('1.0.0'))
    const pretendOld = `data:text/javascript,Object.defineProperty(process.versions, 'node', { value: '20.18.3' })`

    const { code, output } = await ensureInstalled(project, ['--import', pretendOld])

    expect(code).toBe(1)
    expect(output).toMatch(/^This pod needs Node 20\.19 or newer, and this is Node 20\.18\.3: .* try again\.$/)
    expect(await readdir(project)).not.toContain('node_modules')
  })
})
