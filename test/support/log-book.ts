import type { Logger } from 'pino'
import { openLog } from '../../src/log.js'

/** A log as a process keeps it, with everything in it that any level would say. */
export interface LogBook {
  readonly log: Logger
  /** Line by line, as written. */
  readonly lines: readonly string[]
  readonly entries: () => readonly Readonly<Record<string, unknown>>[]
}

export function openLogBook(): LogBook {
  const lines: string[] = []
  const log = openLog({ logLevel: 'trace', logFormat: 'json' }, 'test', { write: (line) => void lines.push(line) })
  return { log, lines, entries: () => lines.map((line) => JSON.parse(line)) }
}
