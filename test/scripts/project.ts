import { type ChildProcess, spawn } from 'node:child_process'
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { onTestFinished } from 'vitest'

const scripts = fileURLToPath(new URL('../../scripts', import.meta.url))

export interface Run {
  readonly process: ChildProcess
  /** Resolves with the first line of output, past or to come, that fits; rejects when the output ends without one. */
  line(pattern: RegExp): Promise<string>
  readonly ended: Promise<{ readonly code: number | null; readonly output: string }>
}

/** A temporary project that contains only the scripts of this repository. */
export async function makeProject(files: Readonly<Record<string, string>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'pod project '))
  onTestFinished(() => rm(folder, { recursive: true, force: true, maxRetries: 20 }))
  await cp(scripts, join(folder, 'scripts'), { recursive: true })
  for (const [name, content] of Object.entries(files)) await write(folder, name, content)
  return folder
}

export async function write(project: string, name: string, content: string): Promise<void> {
  await mkdir(join(project, name, '..'), { recursive: true })
  await writeFile(join(project, name), content)
}

export function run(project: string, script: string, nodeOptions: readonly string[] = []): Run {
  const child = spawn(process.execPath, [...nodeOptions, join(project, 'scripts', script)], {
    cwd: tmpdir(),
    env: { PATH: process.env['PATH'], HOME: project, npm_config_update_notifier: 'false', npm_config_offline: 'true' },
  })
  const lines: string[] = []
  const waiting = new Set<() => void>()
  const hear = (line: string) => {
    lines.push(line)
    for (const look of waiting) look()
  }
  for (const input of [child.stdout, child.stderr]) createInterface({ input }).on('line', hear)
  const ended = new Promise<{ code: number | null; output: string }>((resolve) => {
    child.once('close', (code) => resolve({ code, output: lines.join('\n') }))
  })
  onTestFinished(async () => {
    child.kill('SIGTERM')
    await ended
  })
  return {
    process: child,
    ended,
    async line(pattern) {
      const found = new Promise<string>((resolve) => {
        const look = () => {
          const line = lines.find((candidate) => pattern.test(candidate))
          if (line === undefined) return
          waiting.delete(look)
          resolve(line)
        }
        waiting.add(look)
        look()
      })
      const missed = ended.then(({ output }) => Promise.reject(new Error(`Nothing fits ${pattern} in: ${output}`)))
      return Promise.race([found, missed])
    },
  }
}
