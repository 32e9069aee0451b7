import type { Logger } from 'pino'
import { openLog } from '../../../src/logging/log.js'
import { testLogLevel } from './test-log.js'

/** A log at level `trace` that is kept in memory. */
export interface RecordedLog {
  readonly log: Logger
  /** Log lines, one JSON document each. */
  readonly lines: readonly string[]
  readonly entries: () => readonly Readonly<Record<string, unknown>>[]
}

export function openRecordedLog(): RecordedLog {
  const lines: string[] = []
  const write = (line: string) => {
    lines.push(line)
    if (testLogLevel !== undefined) process.stdout.write(line)
  }
  const log = openLog({ logLevel: 'trace', logFormat: 'json' }, 'test', { write })
  return { log, lines, entries: () => lines.map((line) => JSON.parse(line)) }
}
