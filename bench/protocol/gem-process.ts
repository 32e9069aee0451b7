import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { projectFolder } from '../../src/config/software.js'
import { end } from '../machine/child-process.js'

/** Envelopes to be opened again and again, until that has taken so much processor time. */
export interface GemTask {
  readonly envelopes: readonly string[]
  /** As PEM, by address. */
  readonly keys: Readonly<Record<string, string>>
  /** Who wrote the post that comments belong to. */
  readonly parentAuthor: string
  readonly microseconds: number
}

interface GemAnswer {
  readonly opened: number
  readonly microseconds: number
  /** One for each envelope, in order. */
  readonly readings: readonly Reading[]
}

/** The content of an opened envelope. */
export type Reading = { readonly author: string; readonly guid: string } | { readonly refused: string }

/** A process that does with envelopes what diaspora* does with them. */
export interface GemProcess {
  open(task: GemTask): Promise<GemAnswer>
  close(): Promise<void>
}

/** A program and what it is started with. */
export type Command = readonly [program: string, ...words: string[]]

const RUBY: Command = ['ruby', join(projectFolder(import.meta.dirname), 'bench/protocol/unenvelop.rb')]

/** Undefined: there is no Ruby on this machine, or it has not got the gem, which ends such a process before its first word. */
export async function startGem([program, ...words]: Command = RUBY): Promise<GemProcess | undefined> {
  const child = spawn(program, words, { stdio: ['pipe', 'pipe', 'inherit'] })
  child.stdin.on('error', () => undefined) // its end is reported by its output
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
    close: () => end(child),
  }
}
