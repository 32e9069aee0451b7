import { readFileSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import type { Command } from 'commander'

/** The input of a command: a file, or stdin. */
export async function readInput(file: string | undefined, command: Command): Promise<string> {
  if (file === undefined || file === '-') return text(process.stdin)
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return command.error(`error: ${file} cannot be read`)
  }
}
