import type { Knex } from 'knex'
import { queryRow, queryRows } from '../database/database.js'
import { ADDRESS_HOST_SQL, REVERSED_HOST_SQL } from './pod-preview.js'
import type { RestrictionKind, RestrictionSource } from './restrictions.js'

/** Rules for pods restrict each person at most once. */
export const POD_RULES: RestrictionSource = { source: 'pod_rule', id: 0 }

/** A person whose restriction by rules is not what the rules say now; null: none. */
export interface PersonAgainstRules {
  readonly id: number
  readonly kind: RestrictionKind | null
}

const KIND_OF_POD_SQL = `case when pods.blocked_at is not null then 'block' when pods.limited_at is not null then 'silence' end`

/** The host of the address is judged only if it is not that of the pod. */
const KIND_OF_ADDRESS_SQL = `case when home.host <> pods.host then
  case pod_rule_state(home.host, home.port) when 'blocked' then 'block' when 'limited' then 'silence' end
end`

/** A scalar subquery: one lookup for each person. A join would read the restrictions of all people for each chunk. */
const hasRestriction = (kind: string) => `coalesce((
  select known.kind from person_restrictions as known where known.person_id = people.id and known.source = 'pod_rule' limit 1
) <= ${kind}, false)`

/** The place after a person, in the order of one of the steps. */
export interface RestrictingCursor {
  readonly step: number
  readonly podId: number
  readonly personId: number
}

export const FIRST_RESTRICTING_CURSOR: RestrictingCursor = { step: 0, podId: 0, personId: 0 }

/** Each step begins after the cursor and reads no person twice. 'block' is before 'silence' in the order of texts. */
const steps = [
  // People of restricted pods. Index `people_of_pod`.
  `select found.id, pods.id as "podId", ${KIND_OF_POD_SQL} as kind
   from pods cross join lateral (
     select people.id from people
     where people.pod_id = pods.id and people.id > case when pods.id = :podId then :personId else 0 end
       and not ${hasRestriction(KIND_OF_POD_SQL)}
     order by people.id limit :limit
   ) as found
   where (pods.blocked_at is not null or pods.limited_at is not null) and pods.id >= :podId
   order by pods.id, found.id limit :limit`,
  // Restrictions without a rule, or with a milder rule than before.
  `select people.id, 0 as "podId", least(${KIND_OF_POD_SQL}, ${KIND_OF_ADDRESS_SQL}) as kind
   from person_restrictions as known
   join people on people.id = known.person_id
   join pods on pods.id = people.pod_id
   ${ADDRESS_HOST_SQL}
   where known.source = 'pod_rule' and known.person_id > :personId
     and known.kind is distinct from least(${KIND_OF_POD_SQL}, ${KIND_OF_ADDRESS_SQL})
   order by known.person_id limit :limit`,
  // People whose address is at another host than their pod. Index `people_reversed_host`: the addresses within the domain of each rule.
  `select found.id, 0 as "podId", found.kind
   from (
     select distinct people.id, ${KIND_OF_ADDRESS_SQL} as kind
     from pod_rules
     join people on ${REVERSED_HOST_SQL} >= reverse(pod_rules.domain collate "C")
       and ${REVERSED_HOST_SQL} < reverse(pod_rules.domain collate "C") || '/'
     join pods on pods.id = people.pod_id
     ${ADDRESS_HOST_SQL}
     where pod_rules.state <> 'normal' and people.pod_id is not null and people.id > :personId and home.host <> pods.host
   ) as found
   join people using (id)
   where found.kind is not null and not ${hasRestriction('found.kind')}
   order by found.id limit :limit`,
] as const

export interface PeopleAgainstRules {
  readonly people: readonly PersonAgainstRules[]
  /** The place after the last of them. */
  readonly cursor: RestrictingCursor
}

/** Finds the next people whose restriction has to change, at most `limit`; none: all have the restriction that the rules say. */
export async function findPeopleAgainstRules(
  db: Knex,
  cursor: RestrictingCursor,
  limit: number,
): Promise<PeopleAgainstRules> {
  let { podId, personId } = cursor
  for (let step = cursor.step; step < steps.length; step += 1) {
    const rows = await queryRows<PersonAgainstRules & { readonly podId: number }>(db, steps[step] ?? '', {
      podId,
      personId,
      limit,
    })
    const last = rows.at(-1)
    if (last !== undefined) return { people: rows, cursor: { step, podId: last.podId, personId: last.id } }
    podId = 0
    personId = 0
  }
  return { people: [], cursor }
}

/** Whether there is a rule, or anything that one has left. */
export async function hasPodRules(db: Knex): Promise<boolean> {
  const { found } = await queryRow<{ readonly found: boolean }>(
    db,
    `select exists (select from pod_rules) or exists (select from person_restrictions where source = 'pod_rule')
       or exists (select from pods where blocked_at is not null or limited_at is not null) as found`,
  )
  return found
}

/** Applies the rules to a person who has just been inserted and has no content yet. */
export async function restrictNewPerson(transaction: Knex.Transaction, personId: number): Promise<void> {
  await transaction.raw(
    `with restricted as (
       insert into person_restrictions (person_id, source, source_id, kind)
       select people.id, 'pod_rule', ${POD_RULES.id}, least(${KIND_OF_POD_SQL}, ${KIND_OF_ADDRESS_SQL})
       from people join pods on pods.id = people.pod_id ${ADDRESS_HOST_SQL}
       where people.id = ? and least(${KIND_OF_POD_SQL}, ${KIND_OF_ADDRESS_SQL}) is not null
       returning person_id, kind
     )
     update people set restriction = restricted.kind from restricted where people.id = restricted.person_id`,
    [personId],
  )
}
