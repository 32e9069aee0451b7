import type { Knex } from 'knex'
import { getDomain } from 'tldts'
import { openTokenBuckets, openWindowCounter } from '../../concurrency/rate-counters.js'
import { stateByOwner } from '../../concurrency/state-by-owner.js'
import { siteOfSource } from '../../networks/network-source.js'
import { queryPrepared, queryRows } from '../../persistence/database/database.js'
import { NOW_SQL } from '../../persistence/sql/database-time.js'
import { opaqueParam } from '../../persistence/sql/opaque-param.js'
import { rowsAsColumns } from '../../persistence/sql/rows-as-columns.js'
import type { Services } from '../../services/services.js'
import { inChunks } from '../chunks.js'
import { discoverSignersJob } from '../definitions.js'
import { afterCommit } from '../outbox/after-commit.js'
import type { AddOptions } from '../queues/add-jobs.js'
import { SIGNER_LIMITS } from './limits.js'

/** An unknown signer that an unverified message claims. */
export interface ClaimedSigner {
  readonly address: string
  readonly host: string
  readonly source: string | undefined
}

/** A host with lookups that are due. */
export interface SignerHost {
  readonly host: string
  readonly source?: string | undefined
  /** The host has a known pod that is not offline. */
  readonly isKnown: boolean
  /** Earlier lookups at the host have failed. */
  readonly isRetry: boolean
}

/** Finds the hosts with a known pod that is not offline. */
export async function findKnownHosts(db: Knex, hosts: readonly string[]): Promise<ReadonlySet<string>> {
  if (hosts.length === 0) return new Set()
  const rows = await queryPrepared<{ host: string }>(db, 'known-hosts', KNOWN_HOSTS_SQL, [[...new Set(hosts)]])
  return new Set(rows.map(({ host }) => host))
}

const IS_KNOWN_HOST_SQL = `exists (
  select from pods where pods.host = regexp_replace(requested.host, ':[0-9]+$', '') and offline_since is null
)`

const KNOWN_HOSTS_SQL = `select host from unnest(${opaqueParam('$1', 'text[]')}) as requested(host) where ${IS_KNOWN_HOST_SQL}`

/** Finds the addresses that already have a lookup. */
export async function findLookedUp(db: Knex, addresses: readonly string[]): Promise<ReadonlySet<string>> {
  const rows = await queryPrepared<{ address: string }>(db, 'existing-signer-lookups', EXISTING_LOOKUPS_SQL, [
    addresses,
  ])
  return new Set(rows.map(({ address }) => address))
}

const EXISTING_LOOKUPS_SQL = `
  select address from unnest(${opaqueParam('$1', 'text[]')}) as requested(address) join signer_lookups using (address)`

/** Stores lookups, one for each address, and enqueues jobs for their hosts after the commit. */
export async function addLookups(
  services: Pick<Services, 'jobs'>,
  transaction: Knex.Transaction,
  signers: readonly ClaimedSigner[],
  knownHosts: ReadonlySet<string>,
): Promise<void> {
  if (signers.length === 0) return
  await queryPrepared(transaction, 'new-signer-lookups', NEW_LOOKUPS_SQL, [
    ...rowsAsColumns(signers, ['address', 'host']),
    signers.map(({ source }) => source ?? null),
  ])
  const hosts = new Map(
    signers.map(({ host, source }) => [host, { host, source, isKnown: knownHosts.has(host), isRetry: false }]),
  )
  enqueueSignersAfterCommit(services, transaction, [...hosts.values()])
}

const NEW_LOOKUPS_SQL = `
  insert into signer_lookups (address, host, source)
  select address, host, source
  from unnest(${opaqueParam('$1', 'text[]')}, $2::text[], $3::text[]) as row(address, host, source)
  order by address
  on conflict (address) do nothing`

const ENQUEUED_WITHIN_MS = 500
const ENQUEUE_BATCH_SIZE = 500

/** Adds one job for each host after the commit; the sweeper adds lost ones. */
const enqueueSignersAfterCommit = afterCommit<SignerHost>((services, hosts) =>
  addSignerLookups(services, hosts, { withinMs: ENQUEUED_WITHIN_MS }),
)

/**
 * Adds one job for each host, however many of its people are looked up. Known hosts come first. The others are ordered by the number of
 * hosts that their source, or their domain, has named in the last minute: a new pod comes before thousands of invented hosts. Retries come
 * last.
 */
export async function addSignerLookups(
  { jobs }: Pick<Services, 'jobs'>,
  hosts: readonly SignerHost[],
  options?: AddOptions,
): Promise<void> {
  const byPriority = new Map<number, SignerHost[]>()
  for (const signerHost of new Map(hosts.map((host) => [host.host, host])).values()) {
    const priority = priorityOf(signerHost, countHostsNamedWith(jobs, signerHost))
    byPriority.set(priority, [...(byPriority.get(priority) ?? []), signerHost])
  }
  for (const [priority, some] of byPriority) {
    const hostJobs = some.map(({ host }) => ({ data: { host }, deduplicationKey: `signers-${host}` }))
    for (const batch of inChunks(hostJobs, ENQUEUE_BATCH_SIZE)) {
      await jobs.addEach(discoverSignersJob, batch, { ...options, priority })
    }
  }
}

const FIRST = 1
const RETRIES = 1_000_000
/** There are few priorities, because adding the jobs of each priority takes one request to the queue. */
const HOST_COUNT_STEPS = [1, 4, 16, 64, 256, 1_024, 4_096]

function priorityOf({ isKnown, isRetry }: SignerHost, namedHosts: number): number {
  if (isRetry) return RETRIES
  if (isKnown) return FIRST
  return FIRST + 1 + HOST_COUNT_STEPS.findLastIndex((least) => namedHosts >= least)
}

/**
 * Counts an unknown host for its source and its domain, and returns the larger number of hosts that one of them has named in the last
 * minute. Known hosts and retries are not counted.
 */
function countHostsNamedWith(jobs: Services['jobs'], { host, source, isKnown, isRetry }: SignerHost): number {
  if (isKnown || isRetry) return 0
  const { countNamedHosts } = budgetsOf(jobs, openSignerBudgets)
  const hostsOfDomain = countNamedHosts(`domain ${domainOf(host)}`).count
  if (source === undefined) return hostsOfDomain
  return Math.max(hostsOfDomain, countNamedHosts(`source ${siteOfSource(source) ?? source}`).count)
}

/** The registered domain: `a.b.example` and `c.b.example` are of one, because a wildcard name has any number of hosts. */
function domainOf(host: string): string {
  return getDomain(host) ?? host
}

/** The budgets of each set of open services. */
const budgetsOf = stateByOwner<Services['jobs'], ReturnType<typeof openSignerBudgets>>()

function openSignerBudgets() {
  return {
    countNamedHosts: openWindowCounter<string>({
      perMs: 60_000,
      sources: 2 * SIGNER_LIMITS.sources,
      now: () => performance.now(),
    }),
    takeToken: openTokenBuckets({
      perMinute: SIGNER_LIMITS.unverifiedOfSourcePerMinute,
      sources: SIGNER_LIMITS.sources,
    }),
  }
}

/** Whether this network source may name one more unknown signer on an unknown host. */
export function takeUnverifiedSignerBudget(
  { jobs }: Pick<Services, 'jobs'>,
  source: string | undefined,
  now = performance.now(),
): boolean {
  return source === undefined || budgetsOf(jobs, openSignerBudgets).takeToken(source, now)
}

/** The IPv6 /48 of a column `source`, or the IPv4 address in it. */
export const SITE_OF_SOURCE_SQL = `coalesce(substring(source from '^([0-9a-f]+:[0-9a-f]+:[0-9a-f]+):'), source)`

/** Addresses that are due at a host. The sources take turns, so that one with thousands does not delay the others. */
export async function findDueLookups(db: Knex, host: string, limit: number): Promise<readonly string[]> {
  const rows = await queryPrepared<{ address: string }>(db, 'due-signer-lookups', DUE_LOOKUPS_SQL, [host, limit])
  return rows.map(({ address }) => address)
}

const DUE_LOOKUPS_SQL = `
  select address from (
    select address, created_at, row_number() over (partition by ${SITE_OF_SOURCE_SQL} order by tries, created_at, address) as turn
    from signer_lookups where host = $1 and next_try_at <= now()
  ) as due
  order by turn, created_at, address limit $2`

/** Deletes the lookups of people that are found. */
export async function deleteLookups(db: Knex, addresses: readonly string[]): Promise<void> {
  if (addresses.length === 0) return
  await queryPrepared(db, 'end-signer-lookups', END_LOOKUPS_SQL, [addresses])
}

const END_LOOKUPS_SQL = `
  delete from signer_lookups using unnest(${opaqueParam('$1', 'text[]')}) as ended(address)
  where signer_lookups.address = ended.address`

/** Postpones failed lookups; returns those without further attempts. */
export async function recordFailedLookups(
  db: Knex,
  addresses: readonly string[],
  tries: number,
): Promise<readonly string[]> {
  if (addresses.length === 0) return []
  const rows = await queryPrepared<{ address: string; tries: number }>(
    db,
    'failed-signer-lookups',
    RECORD_FAILED_LOOKUPS_SQL,
    [addresses, SIGNER_LIMITS.retrySeconds],
  )
  return rows.filter((row) => row.tries >= tries).map(({ address }) => address)
}

const RECORD_FAILED_LOOKUPS_SQL = `
  update signer_lookups
  set tries = tries + 1,
    next_try_at = ${NOW_SQL} + make_interval(secs => ($2::float[])[least(tries + 1, cardinality($2::float[]))])
  from unnest(${opaqueParam('$1', 'text[]')}) as failed(address)
  where signer_lookups.address = failed.address
  returning signer_lookups.address, signer_lookups.tries`

/** Postpones lookups stopped by a limit of this pod; this does not count as an attempt. */
export async function delayLookups(db: Knex, addresses: readonly string[]): Promise<void> {
  await queryPrepared(db, 'delayed-signer-lookups', DELAYED_LOOKUPS_SQL, [addresses, SIGNER_LIMITS.busySeconds])
}

const DELAYED_LOOKUPS_SQL = `
  update signer_lookups
  set next_try_at = ${NOW_SQL} + make_interval(secs => $2::float)
  from unnest(${opaqueParam('$1', 'text[]')}) as stopped(address)
  where signer_lookups.address = stopped.address`

/** All addresses that are due at a host that does not answer. */
export async function findAllDueLookups(db: Knex, host: string): Promise<readonly string[]> {
  return findDueLookups(db, host, Number.MAX_SAFE_INTEGER)
}

/** Hosts with due lookups whose job seems to be lost. */
export async function findHostsWithLostLookups(db: Knex, limit: number): Promise<readonly SignerHost[]> {
  return queryRows<SignerHost>(
    db,
    `select requested.host, requested.source, requested.tries > 0 as "isRetry", ${IS_KNOWN_HOST_SQL} as "isKnown"
     from (
       select host, min(source) as source, min(tries) as tries
       from signer_lookups where ${IS_LOST_LOOKUP_SQL} group by host limit ?
     ) as requested`,
    [limit],
  )
}

/** A first lookup counts as lost after five seconds; a retry is due on time. */
export const IS_LOST_LOOKUP_SQL = `next_try_at <= now() - case when tries = 0 then interval '5 seconds' else interval '0' end`
