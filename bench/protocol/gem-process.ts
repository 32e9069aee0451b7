import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { projectFolder } from '../../src/config/software.js'
import { endProcess } from '../machine/child-process.js'

/** Envelopes that the gem opens repeatedly for an amount of processor time. */
export interface GemTask {
  readonly envelopes: readonly string[]
  /** Public keys as PEM, by address. */
  readonly keys: Readonly<Record<string, string>>
  /** Address of the author of the parent post. */
  readonly parentAuthor: string
  readonly microseconds: number
}

interface GemResult {
  readonly opened: number
  readonly microseconds: number
  /** The reading of each envelope, in order. */
  readonly readings: readonly Reading[]
}

/** The content of an opened envelope. */
export type Reading = { readonly author: string; readonly guid: string } | { readonly refused: string }

/** A Ruby process that opens envelopes as diaspora* does. */
export interface GemProcess {
  open(task: GemTask): Promise<GemResult>
  close(): Promise<void>
}

/** A program and its arguments. */
export type Command = readonly [program: string, ...args: string[]]

const RUBY: Command = ['ruby', join(projectFolder(import.meta.dirname), 'bench/protocol/unenvelop.rb')]

/** Undefined: Ruby or the gem is not installed. Without the gem the process exits before its first line. */
export async function startGem([program, ...args]: Command = RUBY): Promise<GemProcess | undefined> {
  const child = spawn(program, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.on('error', () => undefined) // the end of the output reports a failure
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const hasStarted = await once(child, 'spawn').then(
    () => true,
    () => false,
  )
  if (!hasStarted || (await lines.next()).done) return undefined
  return {
    async open(task) {
      child.stdin.write(`${JSON.stringify(task)}\n`)
      const line = await lines.next()
      if (line.done) throw new Error('The process with the gem has ended.')
      return JSON.parse(line.value)
    },
    close: () => endProcess(child),
  }
}
