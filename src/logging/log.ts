import { isatty } from 'node:tty'
import { type DestinationStream, type Logger, pino, stdSerializers } from 'pino'
import pretty from 'pino-pretty'
import type { Config } from '../config/config.js'
import { messageWithoutStatement } from '../persistence/database/errors.js'

/** Fields that may contain secrets; they are redacted in every log line. */
const SECRET_FIELDS = ['authorization', 'cookie', 'password', 'access_token', 'refresh_token', 'client_secret', 'token']

const STDOUT = 1
/** File descriptor of the log of processes that write an answer to stdout. */
export const STDERR = 2

/** Opens the logger of a process: readable lines on a terminal, JSON otherwise. */
export function openLog(
  config: Pick<Config, 'logLevel' | 'logFormat'>,
  name: string,
  output: typeof STDOUT | typeof STDERR | DestinationStream = STDOUT,
): Logger {
  const isTerminal = typeof output === 'number' && isatty(output)
  const isForPeople = config.logFormat === 'pretty' || (config.logFormat === 'auto' && isTerminal)
  const options = {
    name,
    level: config.logLevel,
    base: { name },
    serializers: { err: writeError },
    redact: { paths: SECRET_FIELDS.flatMap((field) => [field, `*.${field}`]), censor: '[secret]' },
  }
  if (!isForPeople) return pino(options, typeof output === 'number' ? pino.destination(output) : output)
  return pino(options, pretty({ destination: output, colorize: isTerminal, ignore: 'pid,hostname', sync: true }))
}

/** Database errors contain statement and values; only their code and a shortened message are logged. */
function writeError(error: Error): unknown {
  const { type, message, stack, code } = stdSerializers.err(error) as ReturnType<typeof stdSerializers.err> & {
    code?: unknown
  }
  const isDatabases = 'severity' in error && 'routine' in error
  const text = isDatabases ? messageWithoutStatement(message) : message
  return { type, message: text, code, stack: isDatabases ? stack.replace(message, text) : stack }
}
