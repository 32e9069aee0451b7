import { StartError } from '../src/errors/start-error.js'
import {
  isDatabaseAccessDenied,
  isDatabaseUnavailable,
  messageWithoutStatement,
} from '../src/persistence/database/errors.js'
import { CommandError } from './command-error.js'

/** Turns the driver's word for "the database is away" into a sentence with host and reason; never with the password. */
export async function describeDatabaseTrouble<Result>(url: string, run: () => Promise<Result>): Promise<Result> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof StartError || !(isDatabaseUnavailable(error) || isDatabaseAccessDenied(error))) throw error
    const trouble = isDatabaseAccessDenied(error) ? 'lets nobody in like this' : 'does not answer'
    throw new CommandError(`The database ${placeOf(url)} ${trouble} (${reasonOf(error)}): check DATABASE_URL.`, {
      cause: error,
    })
  }
}

/** Where the database is, as it may be shown to anybody. */
export function placeOf(url: string): string {
  const { hostname, port, pathname, searchParams } = new URL(url)
  return `${pathname.slice(1) || 'postgres'} on ${searchParams.get('host') ?? (hostname || 'localhost')}:${port || '5432'}`
}

/** Several addresses of one host fail together, as an error without a text of its own. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ')
  return error instanceof Error ? messageWithoutStatement(error.message) || error.name : String(error)
}
