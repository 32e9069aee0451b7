import pg from 'pg'
import { vi } from 'vitest'
import type { Services } from '../../../src/services/services.js'

/** Counts the statements of a call on this connection pool, with those of its transactions. */
export async function countQueries({ db }: Pick<Services, 'db'>, run: () => Promise<unknown>): Promise<number> {
  let count = 0
  const increment = () => {
    count += 1
  }
  db.on('query', increment)
  await run()
  db.removeListener('query', increment)
  return count
}

/** Counts the database statements of a pod process during a call, through every client library. */
export async function statementsDuring(
  run: () => Promise<unknown>,
  process: 'web' | 'worker' = 'web',
): Promise<number> {
  let statements = 0
  const query = pg.Client.prototype.query
  const spy = vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...rest: unknown[]) {
    const name = Reflect.get(Reflect.get(this, 'connectionParameters'), 'application_name')
    if (name === `pod ${process}` && !setsUpConnection(rest[0]) && !isTimerQuery(rest[0])) statements += 1
    return Reflect.apply(query, this, rest)
  })
  try {
    await run()
    return statements
  } finally {
    spy.mockRestore()
  }
}

const READ_FILTERS = 'select * from "filters"'
const COUNT_BYTES = 'insert into pod_bytes'

/** Whether a query sets up a new connection. */
function setsUpConnection(query: unknown): boolean {
  return typeof query === 'string' && query.includes('set statement_timeout')
}

/**
 * Whether a query belongs to a timer. Every few seconds a process reads changed filters, and a worker stores the number of received
 * bytes of each pod.
 */
function isTimerQuery(query: unknown): boolean {
  if (typeof query !== 'object' || query === null) return false
  const text = String(Reflect.get(query, 'text'))
  return Reflect.get(query, 'name') === 'filters-version' || text.startsWith(READ_FILTERS) || text.includes(COUNT_BYTES)
}
