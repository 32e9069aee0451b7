import type { Knex } from 'knex'
import { rowByRowSql } from '../sql/row-by-row.js'
import type { OutboundRecord } from './outbound-record.js'

/** The record that a message is about. */
export interface RecordKey {
  readonly record: OutboundRecord
  readonly guid: string
}

/** Deletes creations of records with all deliveries that have not arrived. */
export async function deleteCreations(transaction: Knex.Transaction, gone: readonly RecordKey[]): Promise<void> {
  if (gone.length === 0) return
  await transaction.raw(
    `delete from outbound_messages using unnest(?::text[], ?::text[]) as gone (record, guid)
     where outbound_messages.record = gone.record and outbound_messages.guid = gone.guid and verb = 'create'`,
    [gone.map(({ record }) => record), gone.map(({ guid }) => guid)],
  )
}

/** Deletes the retraction of a record whose creation was never sent. */
export async function deleteRetractions(transaction: Knex.Transaction, { record, guid }: RecordKey): Promise<void> {
  await transaction('outboundMessages').where({ record, guid, verb: 'retract' }).delete()
}

/** Deletes the retractions of records without an envelope of their own: no job has dispatched them. */
export async function deleteRetractionsOfUndispatched(
  transaction: Knex.Transaction,
  record: OutboundRecord,
  guids: readonly string[],
): Promise<void> {
  if (guids.length === 0) return
  await transaction.raw(
    `delete from outbound_messages as messages
     where record = ? and verb = 'retract' and guid = any(?) and not exists (
       select from outbound_messages as created
       where created.record = messages.record and created.guid = messages.guid and created.verb = 'create'
     )`,
    [record, [...guids]],
  )
}

/**
 * Deletes deliveries of retractions to recipients whose creation still waits and was certainly never sent: no attempt reached the
 * pod, no process holds its lease, and it did not go offline after the creation was stored.
 */
export async function deleteRetractionsOfUnsentCreations(
  transaction: Knex.Transaction,
  record: OutboundRecord,
  guids: readonly string[],
): Promise<void> {
  if (guids.length > 0) await transaction.raw(DELETED_UNSENT_RETRACTIONS_SQL, { record, guids: [...guids] })
}

const DELETED_UNSENT_RETRACTIONS_SQL = `
  with unsent as (
    select messages.guid, created.pod_id, created.person_id
    from outbound_messages as messages
    ${rowByRowSql('deliveries', 'deliveries.message_id = messages.id', 'created')}
    ${rowByRowSql('pods', 'pods.id = created.pod_id')}
    where messages.record = :record and messages.guid = any(:guids) and messages.verb = 'create'
      and created.state = 'waiting' and created.attempts = 0 and coalesce(created.last_fault, 'dns') in ('dns', 'ssl')
      and pods.drained_by is null and (pods.offline_since is null or pods.offline_since < messages.created_at)
  )
  delete from deliveries
  using outbound_messages as messages, unsent
  where messages.record = :record and messages.guid = unsent.guid and messages.verb = 'retract'
    and deliveries.message_id = messages.id and deliveries.pod_id = unsent.pod_id
    and deliveries.person_id is not distinct from unsent.person_id`
