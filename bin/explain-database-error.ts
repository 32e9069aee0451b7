import { StartError } from '../src/errors/start-error.js'
import {
  isDatabaseAccessDenied,
  isDatabaseUnavailable,
  messageWithoutStatement,
} from '../src/persistence/database/errors.js'
import { CommandError } from './command-error.js'

/** Runs `run`; a connection error becomes a sentence with host and reason, without the password. */
export async function explainDatabaseErrors<Result>(url: string, run: () => Promise<Result>): Promise<Result> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof StartError || !(isDatabaseUnavailable(error) || isDatabaseAccessDenied(error))) throw error
    const symptom = isDatabaseAccessDenied(error) ? 'refuses the connection' : 'does not answer'
    throw new CommandError(`The database ${hostAndPort(url)} ${symptom} (${reasonOf(error)}): check DATABASE_URL.`, {
      cause: error,
    })
  }
}

/** The address of the database without credentials. */
export function hostAndPort(url: string): string {
  const { hostname, port, pathname, searchParams } = new URL(url)
  return `${pathname.slice(1) || 'postgres'} on ${searchParams.get('host') ?? (hostname || 'localhost')}:${port || '5432'}`
}

/** A host with several addresses fails with an AggregateError without a message of its own. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ')
  return error instanceof Error ? messageWithoutStatement(error.message) || error.name : String(error)
}
