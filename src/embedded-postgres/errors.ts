import { StartError } from '../start-error.js'

/** The PostgreSQL that comes with the pod cannot do its work here. The message says why and what to do. */
export class EmbeddedPostgresError extends StartError {
  override name = 'EmbeddedPostgresError'
}

export function hasCode(error: unknown, ...codes: readonly string[]): boolean {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' && codes.includes(error.code)
}

export function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
