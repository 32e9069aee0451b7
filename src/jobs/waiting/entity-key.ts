import type { Knex } from 'knex'
import { queryRows } from '../../persistence/database/database.js'
import { RECORD_KINDS, RECORD_TABLES } from '../../persistence/sql/record-tables.js'
import { type FetchableKind, fetchableKind, type RecordKind } from '../../protocol/entities/registry.js'
import type { FetchRequest } from '../definitions.js'

/** Tables of the entities that a message can wait for, and their key columns. */
const ENTITY_TABLES: readonly (readonly [kind: RecordKind | 'person', table: string, column: 'guid' | 'address'])[] = [
  ...RECORD_KINDS.map((kind) => [kind, RECORD_TABLES[kind].table, 'guid'] as const),
  ['person', 'people', 'address'],
]

/**
 * The prefix of a stored parent that is not visible to the author of the message. The message waits as for an unknown parent, and the
 * same pod gets a request, so that requests do not reveal that a private post exists. It never resumes.
 */
export const UNREADABLE = 'unreadable-'

/** An entity that messages wait for, as in the rows: `post:<guid>`, `comment:<guid>`, `person:<address>` … */
export type EntityKey = `${EntityKind}:${string}`

type EntityKind = RecordKind | 'person' | `${typeof UNREADABLE}${FetchableKind}`

/** Splits a key into the kind of the entity and its guid, or the address of the person. */
export function splitEntityKey(entityKey: EntityKey): readonly [kind: EntityKind, name: string] {
  const colon = entityKey.indexOf(':')
  return [entityKey.slice(0, colon) as EntityKind, entityKey.slice(colon + 1)] // as the type of a key says
}

type FetchableKey = FetchableKind | `${typeof UNREADABLE}${FetchableKind}`

export function isFetchable(kind: string): kind is FetchableKey {
  const name = kind.startsWith(UNREADABLE) ? kind.slice(UNREADABLE.length) : kind
  return fetchableKind(name) === name
}

/** The entity to fetch. */
export function toFetchable(kind: FetchableKey): Pick<FetchRequest, 'type' | 'isUnreadable'> {
  if (!kind.startsWith(UNREADABLE)) return { type: kind as FetchableKind } // as its type says
  return { type: kind.slice(UNREADABLE.length) as FetchableKind, isUnreadable: true }
}

/** Returns the keys of those entities that are stored. */
export async function findStoredEntities(
  transaction: Knex.Transaction,
  entityKeys: readonly EntityKey[],
): Promise<readonly EntityKey[]> {
  const kinds = ENTITY_TABLES.filter(([kind]) => entityKeys.some((entityKey) => entityKey.startsWith(`${kind}:`)))
  if (kinds.length === 0) return []
  const finds = kinds.map(
    ([kind, table, column]) => `select '${kind}:' || ${column} as key from ${table} where ${column} = any(?)`,
  )
  const names = kinds.map(([kind]) =>
    entityKeys
      .filter((entityKey) => entityKey.startsWith(`${kind}:`))
      .map((entityKey) => entityKey.slice(kind.length + 1)),
  )
  const rows = await queryRows<{ readonly key: EntityKey }>(transaction, finds.join(' union all '), names)
  return rows.map((row) => row.key)
}
