import type { Knex } from 'knex'

export interface Migration {
  up(db: Knex): Promise<void>
  down(db: Knex): Promise<void>
}

/** Milliseconds, cut off: what is stored is what a page link can carry. */
export const now = `date_trunc('milliseconds', now())`
