import type { Knex } from 'knex'
import { changeRows } from '../database/database.js'

/** Days after which rows expire that have a limit elsewhere. */
export interface ExpiryDays {
  /** A browser without a use in this time counts as new. */
  readonly knownBrowsers: number
  readonly quarantine: number
  /** The pods at which messages about a post have arrived. */
  readonly deliveryReports: number
  readonly mails: number
  readonly mailFaults: number
  /** Outcomes of the items of an import that has ended. */
  readonly importItems: number
  /** Followers of an old account who have not confirmed the contact. */
  readonly claimedFollowers: number
  /** Records of what was forwarded to the new pod of an account; nothing is forwarded later. */
  readonly forwarded: number
}

/** `offset 0` looks each message up by the index `deliveries_once`: a join could read all deliveries. */
const HAS_NO_DELIVERY_SQL = `not exists (
  select from deliveries where deliveries.message_id = outbound_messages.id offset 0
)`

/** The conditions of expired rows by table. Rows with a retention setting are in `prune-rows.ts` and `prune-posts.ts`. */
export function expiredRowConditions(days: ExpiryDays): Readonly<Record<string, string>> {
  return {
    access_tokens: `expires_at < now() - interval '1 day'`,
    refresh_tokens: `expires_at < now() - interval '1 day'`,
    authorization_codes: `expires_at < now() - interval '1 day'`,
    oidc_records: 'expires_at < now()',
    kept_forms: 'expires_at < now()',
    second_steps: 'expires_at < now()',
    passkey_challenges: 'expires_at < now()',
    wrong_codes: `at < now() - interval '1 day'`,
    ended_sessions: `ended_at < now() - interval '15 days'`, // no session is longer
    browser_sessions: `last_used_at < now() - interval '${days.knownBrowsers} days'`,
    // Anyone may register a client; these were never authorized.
    clients: `created_at < now() - interval '30 days'
      and not exists (select from authorizations where authorizations.client_id = clients.id)`,
    invitations: `used_at is null and expires_at < now() - interval '30 days'`,
    message_results: `at < now() - interval '${days.deliveryReports} days'`,
    // Indexes `outbound_messages_full` and `outbound_messages_emptied`. Posts are emptied first.
    outbound_messages: `(
        record <> 'post' and created_at < now() - interval '1 day'
        or record = 'post' and entity = '' and created_at < now() - interval '${days.deliveryReports} days'
      ) and ${HAS_NO_DELIVERY_SQL}`,
    // A trigger deletes their files.
    photos: `pending and created_at < now() - interval '1 day'`,
    refused_uploads: `created_at < now() - interval '1 hour'`,
    figures: `minute < now() - interval '2 days'`,
    queue_samples: `minute < now() - interval '2 days'`,
    // Only the oldest rows are deleted, so that ids have no gap; the latest stays, because clients count from it.
    announcements: `id < coalesce(
      (select min(id) from announcements where created_at >= now() - interval '2 days'),
      (select max(id) from announcements)
    )`,
    quarantine: `last_at < now() - interval '${days.quarantine} days'`,
    pod_bytes: `day < current_date - 7`,
    pod_days: `day < current_date - 14`,
    pod_slots: `slot < now() - interval '25 hours'`,
    account_tokens: 'expires_at < now()',
    mails: `created_at < now() - interval '${days.mails} days'`,
    mail_faults: `at < now() - interval '${days.mailFaults} days'`,
    pending_sign_ups: 'expires_at < now()',
    sign_up_addresses: `created_at < now() - interval '30 days'`,
    case_pictures: `requested_at < now() - interval '1 day'`,
    sign_up_attempts: `at < now() - interval '1 day'`,
    // Selected by the primary key, which begins with the import.
    import_items: `import_id = any(array(
      select id from imports where retry_at is null and finished_at < now() - interval '${days.importItems} days'
    ))`,
    claimed_followers: `created_at < now() - interval '${days.claimedFollowers} days'`,
    forwarded_relayables: `forwarded_at < now() - interval '${days.forwarded} days'`,
    idempotency_keys: `created_at < now() - interval '1 day'`,
  }
}

/** Deletes at most `limit` expired rows of a table, and returns their number. */
export function deleteBatch(db: Knex, table: string, isExpired: string, limit: number): Promise<number> {
  return changeRows(
    db,
    `delete from ${table} where ctid = any(array(select ctid from ${table} where ${isExpired} limit ${limit}))`,
  )
}

/**
 * Removes the text of at most `limit` messages about posts that no pod waits for, and returns their number. The rest stays for the
 * report about the deliveries. A repeated dispatch fills it in again.
 */
export function emptyDeliveredPosts(db: Knex, limit: number): Promise<number> {
  return changeRows(
    db,
    `update outbound_messages set entity = '', envelope = null where ctid = any(array(
       select ctid from outbound_messages
       where record = 'post' and entity <> '' and created_at < now() - interval '1 day' and ${HAS_NO_DELIVERY_SQL}
       limit ${limit}
     ))`,
  )
}
