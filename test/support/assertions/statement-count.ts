import pg from 'pg'
import { vi } from 'vitest'

/** Counts the database statements of a pod process during a call, through every client library. */
export async function statementsDuring(
  run: () => Promise<unknown>,
  process: 'web' | 'worker' = 'web',
): Promise<number> {
  let statements = 0
  const query = pg.Client.prototype.query
  const spy = vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (this: pg.Client, ...rest: unknown[]) {
    const name = Reflect.get(Reflect.get(this, 'connectionParameters'), 'application_name')
    if (name === `pod ${process}` && !setsUpConnection(rest[0])) statements += 1
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
