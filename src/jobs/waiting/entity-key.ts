import type { Knex } from 'knex'
import type { WantedEntity } from '../definitions.js'

/** Tables of the entities that a message can wait for, and their key columns. */
const ENTITY_TABLES = {
  post: ['posts', 'guid'],
  comment: ['comments', 'guid'],
  photo: ['photos', 'guid'],
  like: ['likes', 'guid'],
  poll: ['polls', 'guid'],
  poll_participation: ['poll_participations', 'guid'],
  participation: ['participations', 'guid'],
  conversation: ['conversations', 'guid'],
  message: ['messages', 'guid'],
  person: ['people', 'address'],
} as const

/**
 * The prefix of a stored parent that is not visible to the author of the message. The message waits as for an unknown parent, and the
 * same pod gets a request, so that requests do not reveal that a private post exists. It never resumes.
 */
export const UNREADABLE = 'unreadable-'

/** An entity that messages wait for, as in the rows: `post:<guid>`, `comment:<guid>`, `person:<address>` … */
export type EntityKey = `${EntityKind}:${string}`

type EntityKind = keyof typeof ENTITY_TABLES | `${typeof UNREADABLE}${WantedEntity['type']}`

/** Splits a key into the kind of the entity and its guid, or the address of the person. */
export function splitEntityKey(entityKey: EntityKey): readonly [kind: EntityKind, name: string] {
  const colon = entityKey.indexOf(':')
  return [entityKey.slice(0, colon) as EntityKind, entityKey.slice(colon + 1)] // as the type of a key says
}

type FetchableKind = WantedEntity['type'] | `${typeof UNREADABLE}${WantedEntity['type']}`

export function isFetchable(kind: string): kind is FetchableKind {
  return /^(unreadable-)?(post|poll|comment)$/.test(kind)
}

/** The entity to fetch. */
export function toFetchable(kind: FetchableKind): Pick<WantedEntity, 'type' | 'isUnreadable'> {
  if (!kind.startsWith(UNREADABLE)) return { type: kind as WantedEntity['type'] } // as its type says
  return { type: kind.slice(UNREADABLE.length) as WantedEntity['type'], isUnreadable: true }
}

/** Returns the keys of those entities that are stored. */
export async function findStoredEntities(
  transaction: Knex.Transaction,
  entityKeys: readonly EntityKey[],
): Promise<readonly EntityKey[]> {
  const kinds = Object.entries(ENTITY_TABLES).filter(([kind]) =>
    entityKeys.some((entityKey) => entityKey.startsWith(`${kind}:`)),
  )
  if (kinds.length === 0) return []
  const finds = kinds.map(
    ([kind, [table, column]]) => `select '${kind}:' || ${column} as key from ${table} where ${column} = any(?)`,
  )
  const names = kinds.map(([kind]) =>
    entityKeys
      .filter((entityKey) => entityKey.startsWith(`${kind}:`))
      .map((entityKey) => entityKey.slice(kind.length + 1)),
  )
  const { rows } = await transaction.raw(finds.join(' union all '), names)
  return rows.map((row: { key: EntityKey }) => row.key)
}
