import type { Knex } from 'knex'
import { queryRow } from '../database/database.js'

/** Mails and users by state. */
export interface MailCounts {
  readonly waiting: number
  readonly dead: number
  /** Mails of the last 24 hours. */
  readonly sentToday: number
  readonly usersBouncing: number
  readonly usersSuppressed: number
}

export async function countMails(db: Knex): Promise<MailCounts> {
  return queryRow<MailCounts>(
    db,
    `
    select
      (select count(*)::integer from outbox where queue = 'mail' and failed_at is null) as waiting,
      (select count(*)::integer from outbox where queue = 'mail' and failed_at is not null) as dead,
      (select count(*)::integer from mails where sent_at > now() - interval '1 day') as "sentToday",
      (select count(*)::integer from users where mail_state = 'bouncing') as "usersBouncing",
      (select count(*)::integer from users where mail_state = 'suppressed') as "usersSuppressed"`,
  )
}
