import type { Logger } from 'pino'
import { openLog } from '../../../src/logging/log.js'

/** How much the pods of tests say; `npm run secrets` has them say everything, and looks through it. */
export const testLogLevel = process.env['TEST_LOG_LEVEL']

/** Logs nothing in an ordinary run. */
export function testLog(): Logger {
  return openLog({ logLevel: testLogLevel ?? 'silent', logFormat: 'json' }, 'test')
}
