import type { Knex } from 'knex'
import { queryPrepared } from '../database/database.js'
import { opaqueParam } from '../sql/opaque-param.js'

/** A stored message with everything that its envelope needs. */
export interface SignableMessage {
  readonly id: number
  /** The payload. */
  readonly entity: string
  /** Null: no delivery has needed it yet. */
  readonly envelope: string | null
  /** The address of the sender. */
  readonly address: string | null
  /** Null: the account of the pod signs. */
  readonly userId: number | null
  readonly sealedPrivateKey: Buffer | null
}

/** Finds messages with the keys of their senders. Retracted messages are left out. */
export async function findSignableMessages(db: Knex, ids: readonly number[]): Promise<readonly SignableMessage[]> {
  return queryPrepared<SignableMessage>(db, 'signable-messages', SIGNABLE_MESSAGES_SQL, [[...ids]])
}

/** A message that has its envelope needs no entity and no key. */
const SIGNABLE_MESSAGES_SQL = `
  select
    messages.id,
    case when messages.envelope is null then messages.entity else '' end as entity,
    messages.envelope,
    coalesce(people.address, pod_account.address) as address,
    users.id as "userId",
    coalesce(user_secrets.sealed_private_key, pod_account.sealed_private_key) as "sealedPrivateKey"
  from unnest(${opaqueParam('$1', 'bigint[]')}) as input(id)
  cross join lateral (select * from outbound_messages where outbound_messages.id = input.id offset 0) as messages
  left join lateral (select address from people where people.id = messages.sender_id offset 0) as people on true
  left join lateral (select id from users where users.person_id = messages.sender_id offset 0) as users on true
  left join lateral (
    select sealed_private_key from user_secrets where user_secrets.user_id = users.id offset 0
  ) as user_secrets on true
  left join pod_account on messages.sender_id is null`

export interface NewEnvelope {
  readonly id: number
  readonly envelope: string
}

/** Returns the stored envelopes: if another process has signed first, all pods get its bytes. Retracted messages are left out. */
export async function storeEnvelopes(db: Knex, envelopes: readonly NewEnvelope[]): Promise<readonly NewEnvelope[]> {
  if (envelopes.length === 0) return []
  const inOrder = envelopes.toSorted((one, other) => one.id - other.id)
  return queryPrepared<NewEnvelope>(db, 'store-envelopes', NEW_ENVELOPES_SQL, [
    inOrder.map(({ id }) => id),
    inOrder.map(({ envelope }) => envelope),
  ])
}

const NEW_ENVELOPES_SQL = `
  with input as (
    select * from unnest(${opaqueParam('$1', 'bigint[]')}, $2::text[]) as input(id, envelope)
  ), locked as materialized (
    select messages.id from input join outbound_messages as messages using (id) order by id for no key update of messages
  )
  update outbound_messages as messages set envelope = coalesce(messages.envelope, input.envelope)
  from input join locked using (id)
  where messages.id = input.id
  returning messages.id, messages.envelope`
