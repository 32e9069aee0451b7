import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { Socket } from 'node:net'
import { fileURLToPath } from 'node:url'

const RUNNER = fileURLToPath(new URL('./command-runner.mjs', import.meta.url))
const END_OF_OUTPUT = '\u0003end of output\u0003\n'

export interface CommandOutcome {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

interface Task {
  readonly args: readonly string[]
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly input: string
}

/** A process that has loaded a compiled program and runs its commands one after the other. It ends with the process of the test. */
export interface CommandRunner {
  isBusy(): boolean
  hasEnded(): boolean
  run(task: Task): Promise<CommandOutcome>
  /** Kills the process during a command that takes too long. */
  kill(): void
}

export function openCommandRunner(program: string, { preload, cwd }: { preload: string; cwd: string }): CommandRunner {
  const child = fork(RUNNER, [program, END_OF_OUTPUT], {
    cwd,
    env: { PATH: process.env['PATH'], HOME: process.env['HOME'] },
    execArgv: ['--require', preload],
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    detached: true,
  })
  const hasLoaded = once(child, 'message')
  const ended = once(child, 'close').then(([code]): number | null => code)
  let isRunning = false
  keepAlive(child, false)

  return {
    isBusy: () => isRunning,
    hasEnded: () => !child.connected,
    async run(task) {
      isRunning = true
      keepAlive(child, true)
      try {
        await Promise.race([hasLoaded, ended])
        const stdout = readOutput(child.stdout as Socket, ended) // both are pipes
        const stderr = readOutput(child.stderr as Socket, ended)
        const exitCode = once(child, 'message').then(([message]): number => message.code)
        child.send(task)
        return { code: await Promise.race([exitCode, ended]), stdout: await stdout, stderr: await stderr }
      } finally {
        keepAlive(child, false)
        isRunning = false
      }
    },
    kill: () => child.kill('SIGKILL'),
  }
}

/** Whether the process of the test waits for the child before it ends. */
function keepAlive(child: ChildProcess, isKept: boolean): void {
  for (const handle of [child, child.channel, child.stdout as Socket, child.stderr as Socket]) {
    if (isKept) handle?.ref()
    else handle?.unref()
  }
}

/** Resolves with the output of one command: up to the marker of its end, or all of it if the process ends. */
function readOutput(stream: Socket, ended: Promise<unknown>): Promise<string> {
  return new Promise((resolve) => {
    let text = ''
    const finish = () => {
      stream.off('data', add)
      resolve(text)
    }
    const add = (part: string) => {
      text += part
      if (!text.endsWith(END_OF_OUTPUT)) return
      text = text.slice(0, -END_OF_OUTPUT.length)
      finish()
    }
    stream.setEncoding('utf8').on('data', add)
    void ended.then(finish)
  })
}
