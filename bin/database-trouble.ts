import { isOurs } from '../src/persistence/errors.js'
import { StartError } from '../src/start-error.js'
import { CommandError } from './command-error.js'

/** SQLSTATEs that mean the address leads to a server that does not want us, or not to this database. */
const REFUSED = ['28P01', '28000', '3D000', '42501']

/** Turns the driver's word for "the database is away" into a sentence with host and reason; never with the password. */
export async function describeDatabaseTrouble<Result>(url: string, run: () => Promise<Result>): Promise<Result> {
  try {
    return await run()
  } catch (error) {
    if (error instanceof StartError || !(isOurs(error) || isRefusal(error))) throw error
    throw new CommandError(`The database ${placeOf(url)} does not answer (${reasonOf(error)}): check DATABASE_URL.`, {
      cause: error,
    })
  }
}

/** Where the database is, as it may be shown to anybody. */
export function placeOf(url: string): string {
  const { hostname, port, pathname, searchParams } = new URL(url)
  return `${pathname.slice(1) || 'postgres'} on ${searchParams.get('host') ?? (hostname || 'localhost')}:${port || '5432'}`
}

function isRefusal(error: unknown): boolean {
  return error instanceof Error && 'code' in error && REFUSED.includes(String(error.code))
}

/** Several addresses of one host fail together, as an error without a text of its own. */
function reasonOf(error: unknown): string {
  if (error instanceof AggregateError) return error.errors.map(reasonOf).join('; ')
  return error instanceof Error ? error.message.split(' - ').at(-1) || error.name : String(error)
}
