import type { Knex } from 'knex'

interface Duration {
  readonly days?: number
  readonly hours?: number
}

/** The time so much later by the clock of the database, by which expiry is checked; truncated like every stored time. */
export function databaseTimeIn(db: Knex, { days = 0, hours = 0 }: Duration): Knex.Raw {
  return db.raw(`date_trunc('milliseconds', now()) + make_interval(days => ?, hours => ?)`, [days, hours])
}
