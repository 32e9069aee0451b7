import type { Knex } from 'knex'
import { queryPrepared } from '../../persistence/database/database.js'
import { saveReplayResults } from '../../persistence/inbound/quarantine.js'
import { NOW_SQL } from '../../persistence/sql/database-time.js'
import { opaqueParam } from '../../persistence/sql/opaque-param.js'
import { envelopeBytes } from '../../protocol/envelopes/envelope-bytes.js'
import type { Services } from '../../services/services.js'
import type { EntityKey } from './entity-key.js'
import { WAITING_LIMITS } from './limits.js'
import {
  addLookups,
  type ClaimedSigner,
  findKnownHosts,
  findLookedUp,
  SITE_OF_SOURCE_SQL,
  takeUnverifiedSignerBudget,
} from './signer-lookups.js'
import type { NewWaitingMessage } from './store-waiting-messages.js'
import { countDropped, type WaitingDropReason } from './waiting-metrics.js'

type UnverifiedDependencies = Pick<Services, 'jobs' | 'log'>

const PERSON = 'person:'

/**
 * Decides which messages of unknown signers wait, and enqueues the lookups of their signers. Returns all messages that wait, with the
 * time that they wait. Verified messages, and messages whose signer is stored in the meantime, are returned unchanged.
 */
export async function admitUnverified(
  services: UnverifiedDependencies,
  transaction: Knex.Transaction,
  messages: readonly NewWaitingMessage[],
  stored: ReadonlySet<EntityKey>,
): Promise<readonly NewWaitingMessage[]> {
  const unverifiedMessages = messages.filter(({ isVerified, waitsFor }) => !isVerified && !stored.has(waitsFor))
  if (unverifiedMessages.length === 0) return messages
  const hosts = unverifiedMessages.map(({ senderHost = '' }) => senderHost)
  const knownHosts = await findKnownHosts(transaction, hosts)
  const lookedUp = await findLookedUp(transaction, [...new Set(unverifiedMessages.map(signerOf))])

  const dropReasons = new Map<NewWaitingMessage, WaitingDropReason>()
  const signers = new Map<string, ClaimedSigner>()
  const overBudget = new Set<string>()
  for (const message of unverifiedMessages) {
    const { payload, senderHost: host = '', source } = message
    const address = signerOf(message)
    if (envelopeBytes(payload) > WAITING_LIMITS.maxUnverifiedMessageBytes) {
      dropReasons.set(message, 'too_large')
      continue
    }
    if (lookedUp.has(address) || signers.has(address)) continue
    if (overBudget.has(address) || !(knownHosts.has(host) || takeUnverifiedSignerBudget(services, source))) {
      overBudget.add(address)
      dropReasons.set(message, 'source_budget')
    } else signers.set(address, { address, host, source })
  }
  await addLookups(services, transaction, [...signers.values()], knownHosts)
  reportDropped(
    services,
    [...dropReasons].map(([{ senderHost }, reason]) => ({ reason, host: senderHost ?? null })),
    { isVerified: false },
  )
  const maxWaitSeconds = WAITING_LIMITS.unverifiedWaitSeconds
  return messages
    .filter((message) => !dropReasons.has(message))
    .map((message) =>
      !message.isVerified && !knownHosts.has(message.senderHost ?? '') ? { ...message, maxWaitSeconds } : message,
    )
}

function signerOf({ waitsFor }: NewWaitingMessage): string {
  return waitsFor.slice(PERSON.length)
}

/** Drops messages of hosts beyond their limits: the oldest of the network source with the most messages first. */
export async function enforceUnverifiedLimits(
  services: UnverifiedDependencies,
  transaction: Knex.Transaction,
  messages: readonly NewWaitingMessage[],
): Promise<void> {
  const unverifiedMessages = messages.filter(({ isVerified }) => !isVerified)
  if (unverifiedMessages.length === 0) return
  const rows = await queryPrepared<{ host: string | null }>(
    transaction,
    'bound-unverified',
    DELETED_BEYOND_LIMITS_SQL,
    [
      [...new Set(unverifiedMessages.map(({ senderHost = '' }) => senderHost))],
      WAITING_LIMITS.maxUnverifiedMessagesOfHost,
      WAITING_LIMITS.maxUnverifiedBytesOfHost,
    ],
  )
  reportDropped(
    services,
    rows.map(({ host }) => ({ host, reason: 'host_bound' as const })),
    { isVerified: false },
  )
}

/** Deletes and returns rows beyond the limits. Ranks the sources of a host in turn, each with its newest row first. */
const DELETED_BEYOND_LIMITS_SQL = `
  with excess as materialized (
    select ranked.id
    from unnest(${opaqueParam('$1', 'text[]')}) as limited(host) cross join lateral (
      select id, row_number() over by_turn as rank, sum(bytes) over by_turn as size
      from (
        select id, bytes, row_number() over (partition by ${SITE_OF_SOURCE_SQL} order by id desc) as turn
        from waiting where sender_host = limited.host and not signed
      ) as by_source
      window by_turn as (order by turn, id desc)
    ) as ranked
    where rank > $2 or size > $3
  ), locked as materialized (
    select id from waiting join excess using (id) order by id for update of waiting skip locked
  )
  delete from waiting using locked where waiting.id = locked.id returning waiting.sender_host as host`

/** The fault of messages whose signer was not found. */
const NO_SIGNER = 'DiscoveryFailed'

interface GivenUp {
  readonly host: string | null
  readonly quarantineId: number | null
}

/** Makes messages whose signers cannot be found dead letters, without their payload. */
export async function giveUpSigners(
  services: UnverifiedDependencies,
  transaction: Knex.Transaction,
  addresses: readonly string[],
): Promise<void> {
  if (addresses.length === 0) return
  const entityKeys = addresses.map((address) => `${PERSON}${address}`)
  const rows = await queryPrepared<GivenUp>(
    transaction,
    'given-up-signers',
    // "not signed" would also fit an index that begins with the time, and be read from its beginning.
    giveUpSql(
      `select id from unnest(${opaqueParam('$1', 'text[]')}) as entity_key cross join lateral (
         select id from waiting where waits_for = entity_key and signed is not true offset 0
       ) as unverified`,
    ),
    [entityKeys],
  )
  await saveFaultOfReplays(transaction, rows)
  recordGivenUp(services, rows)
}

/** Gives up unverified messages that have waited too long. */
export async function giveUpOverdueUnverified(
  services: UnverifiedDependencies,
  transaction: Knex.Transaction,
  limit: number,
): Promise<void> {
  const rows = await queryPrepared<GivenUp>(
    transaction,
    'give-up-unverified',
    giveUpSql(`select id from waiting where due_at <= now() and not signed order by due_at limit $1`),
    [limit],
  )
  await saveFaultOfReplays(transaction, rows)
  recordGivenUp(services, rows)
}

/** Makes the waiting messages that `idsSql` selects dead letters, and returns their hosts. */
function giveUpSql(idsSql: string): string {
  return `
    with deleted as (
      delete from waiting where id = any(array(${idsSql})) returning waiting.*
    ), dead_letters as (
      insert into outbox (queue, name, data, accepted_at, failed_at)
      select
        case when recipient_guid is null then 'inbound' else 'inbound-private' end,
        name,
        jsonb_build_object(
          'recipientGuid', recipient_guid, 'times', times, 'last', true, 'fault', '${NO_SIGNER}',
          'signer', substr(waits_for, ${PERSON.length + 1}), 'bytes', bytes
        ),
        accepted_at,
        ${NOW_SQL}
      from deleted order by deleted.id
    )
    select sender_host as host, quarantine_id from deleted`
}

async function saveFaultOfReplays(transaction: Knex.Transaction, rows: readonly GivenUp[]): Promise<void> {
  const results = rows.flatMap(({ quarantineId }) =>
    quarantineId === null ? [] : [{ id: quarantineId, result: NO_SIGNER }],
  )
  if (results.length > 0) await saveReplayResults(transaction, results)
}

function recordGivenUp(services: UnverifiedDependencies, rows: readonly GivenUp[]): void {
  reportDropped(
    services,
    rows.map(({ host }) => ({ host, reason: 'signer_not_found' as const })),
    { isVerified: false },
  )
}

interface Dropped {
  readonly host: string | null
  readonly reason: WaitingDropReason
}

/** Hosts in one log line. */
const HOSTS_NAMED = 5

export function reportDropped(
  { log }: Pick<Services, 'log'>,
  dropped: readonly Dropped[],
  { isVerified }: { readonly isVerified: boolean },
): void {
  for (const reason of new Set(dropped.map((one) => one.reason))) {
    const hosts = dropped.filter((one) => one.reason === reason).map(({ host }) => host)
    countDropped(reason, isVerified, hosts.length)
    log.warn(
      { reason, signed: isVerified, messages: hosts.length, hosts: [...new Set(hosts)].slice(0, HOSTS_NAMED) },
      'waiting messages dropped',
    )
  }
}
