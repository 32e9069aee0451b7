import { type DestinationStream, type Logger, pino, stdSerializers } from 'pino'
import pretty from 'pino-pretty'
import type { Config } from './config.js'
import { withoutStatement } from './persistence/errors.js'

/** Fields that may hold what nobody should read later, wherever they turn up. */
const SECRET_FIELDS = ['authorization', 'cookie', 'password', 'access_token', 'refresh_token', 'client_secret', 'token']

/** One logger per process; what it writes is read by people on a terminal and by programs elsewhere. */
export function openLog(
  config: Pick<Config, 'logLevel' | 'logFormat'>,
  name: string,
  destination?: DestinationStream,
): Logger {
  const forPeople = config.logFormat === 'pretty' || (config.logFormat === 'auto' && process.stdout.isTTY === true)
  const options = {
    name,
    level: config.logLevel,
    base: { name },
    serializers: { err: writeError },
    redact: { paths: SECRET_FIELDS.flatMap((field) => [field, `*.${field}`]), censor: '[secret]' },
  }
  if (!forPeople) return pino(options, destination)
  return pino(options, pretty({ colorize: process.stdout.isTTY === true, ignore: 'pid,hostname', sync: true }))
}

/** Database errors carry statement and values in their text and fields; a log may have the code, never the values. */
function writeError(error: Error): unknown {
  const { type, message, stack, code } = stdSerializers.err(error) as ReturnType<typeof stdSerializers.err> & {
    code?: unknown
  }
  const isDatabases = 'severity' in error && 'routine' in error
  const text = isDatabases ? withoutStatement(message) : message
  return { type, message: text, code, stack: isDatabases ? stack.replace(message, text) : stack }
}
