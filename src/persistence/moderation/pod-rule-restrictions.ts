import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'
import { ADDRESS_HOST_SQL } from './pod-preview.js'
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

const hasRestriction = (kind: string) => `exists (
  select from person_restrictions as known
  where known.person_id = people.id and known.source = 'pod_rule' and known.kind <= ${kind}
)`

/** 'block' is before 'silence' in the order of texts. */
const statements = [
  // People of restricted pods, by the index of people by pod.
  `select people.id, ${KIND_OF_POD_SQL} as kind from pods join people on people.pod_id = pods.id
   where (pods.blocked_at is not null or pods.limited_at is not null) and not ${hasRestriction(KIND_OF_POD_SQL)}
   limit ?`,
  // Restrictions without a rule, or with a milder rule than before.
  `select people.id, least(${KIND_OF_POD_SQL}, ${KIND_OF_ADDRESS_SQL}) as kind
   from person_restrictions as known
   join people on people.id = known.person_id
   join pods on pods.id = people.pod_id
   ${ADDRESS_HOST_SQL}
   where known.source = 'pod_rule' and known.kind is distinct from least(${KIND_OF_POD_SQL}, ${KIND_OF_ADDRESS_SQL})
   limit ?`,
  // People whose address is at another host than their pod. Reads the addresses of all remote people.
  `select people.id, ${KIND_OF_ADDRESS_SQL} as kind
   from people join pods on pods.id = people.pod_id
   ${ADDRESS_HOST_SQL}
   where home.host <> pods.host and ${KIND_OF_ADDRESS_SQL} is not null and not ${hasRestriction(KIND_OF_ADDRESS_SQL)}
   limit ?`,
] as const

/** Finds people whose restriction has to change, at most `limit`. */
export async function findPeopleAgainstRules(db: Knex, limit: number): Promise<readonly PersonAgainstRules[]> {
  for (const statement of statements) {
    const rows = await queryRows<PersonAgainstRules>(db, statement, [limit])
    if (rows.length > 0) return rows
  }
  return []
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
