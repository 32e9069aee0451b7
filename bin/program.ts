import { existsSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { readSoftware } from '../src/config/software.js'
import { Refusal } from '../src/domain/refusals.js'
import { StartError } from '../src/errors/start-error.js'
import { messageOf } from '../src/errors/thrown.js'
import { QueueUnavailable } from '../src/jobs/queues/queue-unavailable.js'
import { BackupError, RepositoryUnavailableError } from '../src/operations/backup/backup-error.js'
import { messageWithoutStatement } from '../src/persistence/database/errors.js'
import { StorageUnavailable } from '../src/persistence/s3/storage-unavailable.js'
import { TakeOverError } from '../src/take-over/take-over-error.js'
import { CommandError } from './command-error.js'
import { commandGroups } from './command-groups.js'
import { confirmationText, isUnconfirmed, previewText } from './confirmation-texts.js'

const DONE = 0
const FAILED = 1
const WRONG_USE = 2

const VERSION_OPTION = '--version'

/** Runs one command and returns the exit code. */
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
    if (isUnconfirmed(error) && words.includes('--dry-run')) {
      process.stdout.write(`${previewText(error, asJson)}\n`)
      return DONE
    }
    process.stderr.write(`${errorText(error, asJson)}\n`)
    return FAILED
  }
}

/** Builds the command tree, or the part for a first word; wrong use throws instead of ending the process. */
export async function buildProgram(wanted?: string, { asJson = false } = {}): Promise<Command> {
  const program = new Command('pod')
    .description('Runs and manages a diaspora*-compatible pod.')
    .version(readSoftware().version)
    .exitOverride()
    .enablePositionalOptions()
    .showHelpAfterError('Use --help for its usage.')
    .configureOutput(asJson ? { writeErr() {} } : {})
  if (wanted === VERSION_OPTION) return program
  const group = commandGroups.find(({ words }) => wanted !== undefined && words.includes(wanted))
  const loadedGroups = await Promise.all((group ? [group] : commandGroups).map(({ load }) => load()))
  for (const addCommands of loadedGroups) addCommands(program)
  return program
}

function usageError({ message }: CommanderError): string {
  return message.replace(/^error: /, '')
}

/** Errors are JSON with --json. */
function errorText(error: unknown, asJson: boolean): string {
  if (isUnconfirmed(error)) return confirmationText(error, asJson)
  const sentence = sentenceOf(error)
  if (!asJson) return sentence
  const reason = error instanceof Refusal ? { reason: error.reason } : {}
  return JSON.stringify({ error: sentence, ...reason })
}

/** The text of an error, without stack and without SQL values. */
function sentenceOf(error: unknown): string {
  if (error instanceof Refusal && error.reason === 'reason_needed') return `${error.message} Add --reason TEXT.`
  const expected = [
    StartError,
    Refusal,
    CommandError,
    QueueUnavailable,
    BackupError,
    RepositoryUnavailableError,
    TakeOverError,
    StorageUnavailable,
  ].some((kind) => error instanceof kind)
  if (expected) return messageOf(error)
  return `Command failed: ${messageWithoutStatement(messageOf(error)) || 'the error has no message'}.`
}

/** The reader of the output has closed the pipe (`pod user list | head`). */
function endQuietly(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EPIPE') throw error
  process.exit(DONE)
}
