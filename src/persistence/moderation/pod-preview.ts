import type { Knex } from 'knex'
import { queryRow } from '../database/database.js'

/** A number, or the bound that it exceeds. */
export type BoundedCount = number | { readonly count: number; readonly exact: false }

export interface PodPreview {
  /** The first known pods of the rule, by host. */
  readonly pods: readonly { readonly host: string; readonly port: number; readonly people: number }[]
  readonly knownPods: BoundedCount
  readonly people: BoundedCount
  /** Local users with a relation to one of them. */
  readonly localUsers: BoundedCount
  /** Pairs of a local user and a person there: the user follows the person. */
  readonly localFollowers: BoundedCount
  /** Pairs in which the person follows the user. */
  readonly remoteFollowers: BoundedCount
  /** Pairs with a relation in any direction. */
  readonly contacts: BoundedCount
  readonly posts: BoundedCount
  readonly comments: BoundedCount
  readonly photos: BoundedCount
  readonly conversations: BoundedCount
  readonly deliveriesWaiting: BoundedCount
  readonly cases: BoundedCount
}

type CountedPods = Pick<PodPreview, 'pods'> & Readonly<Record<Exclude<keyof PodPreview, 'pods'>, number>>

const MAX_COUNTED = 100_000
const PODS_NAMED = 50

/** Counts what a rule for this domain concerns. Each count reads a bounded number of rows. */
export async function previewPods(
  db: Knex,
  { domain, subdomains, port }: { readonly domain: string; readonly subdomains: boolean; readonly port: number | null },
): Promise<PodPreview> {
  const { pods, ...counts } = await db.transaction(async (transaction) => {
    await transaction.raw(`set local statement_timeout = '5s'`)
    const podCounts = await queryRow<CountedPods>(transaction, RULE_PREVIEW_SQL, { domain, subdomains, port })
    await transaction.raw('set local statement_timeout to default')
    return podCounts
  })
  return { pods, ...boundedCounts<Omit<PodPreview, 'pods'>>(counts) }
}

/** Counts of `countUpTo` as the admin API shows them. */
export function boundedCounts<Counts>(counts: Readonly<Record<string, number>>): Counts {
  const boundedCounts = Object.entries(counts).map(([name, count]) => [
    name,
    Number(count) > MAX_COUNTED ? { count: MAX_COUNTED, exact: false } : Number(count),
  ])
  return Object.fromEntries(boundedCounts)
}

const isWithin = (host: string) =>
  `(regexp_replace(${host}, '^www\\.', '') = input.domain
    or (input.subdomains and right(${host}, length(input.domain) + 1) = '.' || input.domain))`

/** Reads one row more than the bound. */
export const countUpTo = (rows: string) =>
  `(select count(*)::integer from (${rows} limit ${MAX_COUNTED + 1}) as counted)`

/** The expression of the index `people_reversed_host`. */
export const REVERSED_HOST_SQL = `reverse(regexp_replace(split_part(people.address, '@', 2), ':[0-9]+$', ''))`

/** The host and the port of the address of a person, as `home`. */
export const ADDRESS_HOST_SQL = `cross join lateral (
  select regexp_replace(address_host, ':[0-9]+$', '') as host, coalesce(cast(substring(address_host from ':([0-9]{1,5})$') as integer), 443) as port
  from split_part(people.address, '@', 2) as address_host
) as home`

/**
 * People match by the host of their pod or of their address. The index `people_reversed_host` has the addresses at a domain and its
 * subdomains in one range, with a few others: `.` and `/` follow each other in the byte order, and `-` precedes them.
 */
const MATCHING_PEOPLE_SQL = `
  input as materialized (
    select cast(:domain as text) as domain, reverse(cast(:domain as text) collate "C") as reversed,
      cast(:subdomains as boolean) as subdomains, cast(:port as integer) as port
  ), known_pods as materialized (
    select pods.id, pods.host, pods.port
    from input join pods on pod_domains(pods.host) @> array[input.domain]
    where ${isWithin('pods.host')} and (input.port is null or pods.port = input.port)
  ), matching as (
    select people.id, people.guid from people where people.pod_id in (select id from known_pods)
    union
    select people.id, people.guid
    from input
    join people on ${REVERSED_HOST_SQL} >= input.reversed and ${REVERSED_HOST_SQL} < input.reversed || '/'
    ${ADDRESS_HOST_SQL}
    where people.pod_id is not null and ${isWithin('home.host')} and (input.port is null or home.port = input.port)
  )`

const RULE_PREVIEW_SQL = `
  with ${MATCHING_PEOPLE_SQL}, persons as materialized (
    select id, guid from matching limit ${MAX_COUNTED + 1}
  ), relations as materialized (
    select contacts.user_id, contacts.sharing, contacts.receiving
    from persons join contacts on contacts.person_id = persons.id
    where contacts.sharing or contacts.receiving
    limit ${MAX_COUNTED + 1}
  )
  select
    coalesce((
      select json_agg(named) from (
        select host, port, (select count(*) from people where people.pod_id = known_pods.id) as people
        from known_pods order by host, port limit ${PODS_NAMED}
      ) as named
    ), '[]') as pods,
    (select count(*)::integer from known_pods) as "knownPods",
    (select count(*)::integer from persons) as people,
    (select count(distinct user_id)::integer from relations) as "localUsers",
    (select count(*)::integer from relations where receiving) as "localFollowers",
    (select count(*)::integer from relations where sharing) as "remoteFollowers",
    (select count(*)::integer from relations) as contacts,
    ${countUpTo('select from persons join posts on posts.author_id = persons.id')} as posts,
    ${countUpTo('select from persons join comments on comments.author_id = persons.id')} as comments,
    ${countUpTo('select from persons join photos on photos.author_id = persons.id')} as photos,
    ${countUpTo('select distinct visible.conversation_id from persons join conversation_visibilities as visible on visible.person_id = persons.id')} as conversations,
    ${countUpTo(`select from known_pods join deliveries on deliveries.pod_id = known_pods.id and deliveries.state = 'waiting'`)} as "deliveriesWaiting",
    ${countUpTo(`select from persons join moderation_cases on moderation_cases.author_id = persons.id and moderation_cases.closed_at is null`)} as cases`

/**
 * Whether the rules, as they are stored now, block people within this domain who have relations to local users and whose pod is not
 * blocked yet. Contacts of people who are blocked already are inactive.
 */
export async function doRulesEndRelations(
  transaction: Knex.Transaction,
  { domain, subdomains, port }: { readonly domain: string; readonly subdomains: boolean; readonly port: number | null },
): Promise<boolean> {
  const { ends } = await queryRow<{ readonly ends: boolean }>(transaction, ENDED_RELATIONS_SQL, {
    domain,
    subdomains,
    port,
  })
  return ends
}

/** Reads no people unless there is a block of the domain or of a wider one. */
const ENDED_RELATIONS_SQL = `
  with ${MATCHING_PEOPLE_SQL}
  select exists (select from pod_rules where state = 'blocked' and domain = any(pod_domains(cast(:domain as text))))
    and exists (
      select from matching
      join contacts on contacts.person_id = matching.id and (contacts.sharing or contacts.receiving)
      join people on people.id = matching.id
      join pods on pods.id = people.pod_id and pods.blocked_at is null
      ${ADDRESS_HOST_SQL}
      where 'blocked' in (pod_rule_state(pods.host, pods.port), pod_rule_state(home.host, home.port))
    ) as ends`
