import { existsSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { readSoftware } from '../src/config/software.js'
import { Refusal } from '../src/domain/refusals.js'
import { StartError } from '../src/errors/start-error.js'
import { messageOf } from '../src/errors/thrown.js'
import { QueueUnavailable } from '../src/jobs/queues/queue-unavailable.js'
import { BackupError } from '../src/operations/backup/backup-error.js'
import { messageWithoutStatement } from '../src/persistence/database/errors.js'
import { StorageUnavailable } from '../src/persistence/s3/storage-unavailable.js'
import { TakeOverError } from '../src/take-over/take-over-error.js'
import { CommandError } from './command-error.js'
import { commandGroups } from './command-groups.js'
import { countText, printable, table } from './output.js'

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

function isUnconfirmed(error: unknown): error is Refusal {
  return error instanceof Refusal && error.reason === 'confirmation_needed'
}

/** What a command would change. `--yes` takes the place of the `confirm` of the admin API. */
function confirmationText(refusal: Refusal, asJson: boolean): string {
  const sentence = 'Nothing was changed. Add --yes to do it.'
  if (!asJson) return `${previewText(refusal, false)}\n${sentence}`
  return JSON.stringify({ error: sentence, reason: refusal.reason, preview: previewIn(refusal) })
}

function previewText(refusal: Refusal, asJson: boolean): string {
  const preview = previewIn(refusal)
  if (asJson) return JSON.stringify(preview)
  const rows = Object.entries(preview).map(([name, value]) => [name.replaceAll('_', ' '), previewValue(value)])
  return table(rows).map(printable).join('\n')
}

function previewIn({ details }: Refusal): object {
  return Object(details['preview'])
}

function previewValue(value: unknown): string {
  if (value === null) return '-'
  if (typeof value !== 'object') return String(value)
  return isCount(value) ? countText(value) : JSON.stringify(value)
}

function isCount(value: object): value is { readonly count: number } {
  return 'count' in value && typeof value.count === 'number'
}

/** The text of an error, without stack and without SQL values. */
function sentenceOf(error: unknown): string {
  const expected = [
    StartError,
    Refusal,
    CommandError,
    QueueUnavailable,
    BackupError,
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
