import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import type { Config } from '../config/config.js'
import { StartError } from '../errors/start-error.js'
import { messageOf } from '../errors/thrown.js'
import { POD_LIMITS } from './limits.js'
import type { Terms } from './services.js'

/** Reads TERMS_FILE. Undefined: the operator has no terms. */
export async function readTerms({ termsFile }: Pick<Config, 'termsFile'>): Promise<Terms | undefined> {
  if (termsFile === undefined) return undefined
  const bytes = await readFile(termsFile).catch((error: unknown) => {
    throw new StartError(`TERMS_FILE cannot be read. ${messageOf(error)}`)
  })
  const text = bytes.toString().trim()
  if (text === '' || bytes.length > POD_LIMITS.termsBytes) {
    throw new StartError(`TERMS_FILE must be a text of 1 to ${POD_LIMITS.termsBytes} bytes: ${termsFile}`)
  }
  return { text, version: createHash('sha256').update(bytes).digest('hex').slice(0, 12) }
}
