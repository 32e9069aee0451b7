import { createIndexConcurrently, type Migration } from './migration.js'

/** Indexes for lists of dead letters by queue, fault and pod, and for the people at a host. */
export const deadLetterLists: Migration = {
  config: { transaction: false },

  async up(db) {
    for (const [name, definition] of Object.entries(INDEXES)) await createIndexConcurrently(db, name, definition)
  },

  async down(db) {
    for (const name of Object.keys(INDEXES)) await db.raw(`drop index if exists ${name}`)
  },
}

/** The host of the pod from which a job fetches. */
const POD_OF_JOB = `regexp_replace(coalesce(data ->> 'from', data ->> 'address', data ->> 'host', data #>> '{failure,pod}'), '^.*@', '')`

/** The host of an address without its port, reversed: a domain and its subdomains are one range. */
const REVERSED_HOST = `reverse(regexp_replace(split_part(address, '@', 2), ':[0-9]+$', ''))`

const INDEXES = {
  outbox_failed_of_queue: 'on outbox (queue, failed_at desc, id desc) where failed_at is not null',
  outbox_failed_by_fault: `on outbox ((data ->> 'fault'), failed_at desc, id desc) where failed_at is not null`,
  outbox_failed_by_pod: `on outbox ((${POD_OF_JOB}), failed_at desc, id desc) where failed_at is not null`,
  deliveries_dead_of_pod: `on deliveries (pod_id, died_at desc, id desc) where state = 'dead'`,
  deliveries_dead_by_fault: `on deliveries (last_fault, died_at desc, id desc) where state = 'dead'`,
  people_reversed_host: `on people ((${REVERSED_HOST})) where pod_id is not null`,
}
