import pg from 'pg'
import { vi } from 'vitest'
import type { Pod } from '../../../src/pod/pod.js'

/** Counts the statements of a call on this connection pool, with those of its transactions. */
export async function countQueries({ db }: Pick<Pod, 'db'>, run: () => Promise<unknown>): Promise<number> {
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
    if (name === `pod ${process}` && !setsUpConnection(rest[0]) && !isOfTimer(rest[0])) statements += 1
    return Reflect.apply(query, this, rest)
  })
  try {
    await run()
    return statements
  } finally {
    spy.mockRestore()
  }
}

/** Once for a connection, which lasts for many requests and messages. */
function setsUpConnection(query: unknown): boolean {
  return typeof query === 'string' && query.includes('set statement_timeout')
}

/** Every few seconds a process compares its filters with the stored ones, whatever else it does. */
function isOfTimer(query: unknown): boolean {
  return typeof query === 'object' && query !== null && Reflect.get(query, 'name') === 'filters-version'
}
