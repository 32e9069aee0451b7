import { existsSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { readSoftware } from '../src/config/software.js'
import { Refusal } from '../src/domain/refusals.js'
import { StartError } from '../src/errors/start-error.js'
import { messageOf } from '../src/errors/thrown.js'
import { QueueUnavailable } from '../src/jobs/queues/queue-unavailable.js'
import { messageWithoutStatement } from '../src/persistence/database/errors.js'
import { CommandError } from './command-error.js'
import { runCommands } from './commands/run.js'

const DONE = 0
const FAILED = 1
const WRONG_USE = 2

/** Runs one command and says with which exit code the process shall end. */
export async function runProgram(words: readonly string[]): Promise<number> {
  process.stdout.on('error', endQuietly)
  const asJson = words.includes('--json')
  try {
    if (existsSync('.env')) process.loadEnvFile('.env')
    const program = await buildProgram(words[2], { asJson })
    await program.parseAsync(words)
    return DONE
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return DONE
      if (asJson) process.stderr.write(`${JSON.stringify({ error: usageError(error) })}\n`)
      return WRONG_USE // without --json the library has printed the reason
    }
    process.stderr.write(`${errorText(error, asJson)}\n`)
    return FAILED
  }
}

/** Processes that run for months need not hold what all the other commands are made of. */
const LASTING = new Set(['start', 'web', 'worker'])

/** All commands, or those beside the wanted one that cost nothing; wrong use throws instead of ending the process. */
export async function buildProgram(wanted?: string, { asJson = false } = {}): Promise<Command> {
  const program = new Command('pod')
    .description('Runs and tends a diaspora*-compatible pod.')
    .version(readSoftware().version)
    .exitOverride()
    .enablePositionalOptions()
    .showHelpAfterError('Add --help to see how it is used.')
    .configureOutput(asJson ? { writeErr() {} } : {})
  runCommands(program)
  if (wanted !== undefined && LASTING.has(wanted)) return program
  const { passingCommands } = await import('./passing-commands.js')
  for (const add of passingCommands) add(program)
  return program
}

function usageError({ message }: CommanderError): string {
  return message.replace(/^error: /, '')
}

/** For a program that asked for JSON, JSON too. */
function errorText(error: unknown, asJson: boolean): string {
  const sentence = sentenceOf(error)
  if (!asJson) return sentence
  const reason = error instanceof Refusal ? { reason: error.reason } : {}
  return JSON.stringify({ error: sentence, ...reason })
}

/** People read this one: never a stack, never a statement with its values. */
function sentenceOf(error: unknown): string {
  const expected = [StartError, Refusal, CommandError, QueueUnavailable].some((kind) => error instanceof kind)
  if (expected) return messageOf(error)
  return `This did not work: ${messageWithoutStatement(messageOf(error)) || 'no reason is known'}.`
}

/** Whoever reads the output has seen enough (`pod user list | head`). */
function endQuietly(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error
  process.exit(DONE)
}
