import type { Knex } from 'knex'

export interface Migration {
  up(db: Knex): Promise<void>
  down(db: Knex): Promise<void>
}

/** The time in whole milliseconds, because page links carry milliseconds. */
export const now = `date_trunc('milliseconds', now())`
