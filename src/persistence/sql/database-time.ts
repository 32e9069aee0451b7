import type { Knex } from 'knex'

interface Duration {
  readonly days?: number
  readonly hours?: number
}

/** The time of the database clock. Stored times have milliseconds: rounded up, a row written now would not be due yet. */
export const NOW_SQL = `date_trunc('milliseconds', now())`

/** The time of the database clock plus this duration, by which expiry is checked. */
export function databaseTimeIn(db: Knex, { days = 0, hours = 0 }: Duration): Knex.Raw {
  return db.raw(`${NOW_SQL} + make_interval(days => ?, hours => ?)`, [days, hours])
}
