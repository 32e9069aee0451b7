import type { Logger } from 'pino'
import { openLog } from '../../../src/logging/log.js'

/** The log level of pods in tests. `npm run secrets` sets the most verbose level, and searches the output. */
export const testLogLevel = process.env['TEST_LOG_LEVEL']

/** Logs nothing in an ordinary run. */
export function testLog(): Logger {
  return openLog({ logLevel: testLogLevel ?? 'silent', logFormat: 'json' }, 'test')
}
