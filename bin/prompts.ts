import { createInterface } from 'node:readline'
import { Writable } from 'node:stream'
import { CommandError } from './command-error.js'

/** Questions of one command. The answers are lines of stdin: typed on a terminal, or piped. */
export interface Prompts {
  /** Whether a person answers, and not a pipe. */
  readonly isTerminal: boolean
  /** The next line; empty at the end of the input. Ctrl-C ends the command. */
  ask(question: string): Promise<string>
  /** Like `ask`, but a terminal does not show what is typed. */
  askHidden(question: string): Promise<string>
}

/** Runs the part of a command that prompts. Afterwards Ctrl-C is a signal again. */
export async function withPrompts<Result>(run: (prompts: Prompts) => Promise<Result>): Promise<Result> {
  // Opened by the first question: until then stdin is not read.
  let opened: OpenTerminal | undefined
  const read = async (question: string, isHidden: boolean) => {
    opened ??= openTerminal()
    return opened.read(question, isHidden)
  }
  try {
    return await run({
      isTerminal: Boolean(process.stdin.isTTY),
      ask: (question) => read(question, false),
      askHidden: (question) => read(question, true),
    })
  } finally {
    opened?.close()
  }
}

interface OpenTerminal {
  read(question: string, isHidden: boolean): Promise<string>
  close(): void
}

/** Reads lines by an iterator, because lines of a pipe come together, and a single question would lose all but the first. */
function openTerminal(): OpenTerminal {
  let isShown = true
  const output = new Writable({
    write(chunk, _encoding, done) {
      if (isShown) process.stderr.write(chunk)
      done()
    },
  })
  const terminal = Boolean(process.stdin.isTTY)
  const reader = createInterface({ input: process.stdin, output, terminal, historySize: 0 })
  const lines = reader[Symbol.asyncIterator]()
  let isInterrupted = false
  reader.on('SIGINT', () => {
    isInterrupted = true
    reader.close()
  })
  return {
    async read(question, isHidden) {
      isShown = !isHidden
      if (isHidden) process.stderr.write(question)
      else reader.setPrompt(question)
      reader.prompt()
      const { value, done } = await lines.next()
      if (isHidden || isInterrupted) process.stderr.write('\n')
      if (isInterrupted) throw new CommandError('Interrupted. Nothing was changed.')
      return done === true ? '' : value
    },
    close: () => reader.close(),
  }
}
