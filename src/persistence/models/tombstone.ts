import type { Knex } from 'knex'
import { namesInRetractions, RETRACTED_RECORDS, type RetractableKind } from '../../protocol/entities/registry.js'
import { queryRows } from '../database/database.js'
import { RECORD_TABLES } from '../sql/record-tables.js'
import { rowByRowSql } from '../sql/row-by-row.js'
import { Model } from './model.js'
import { Person } from './person.js'

/** A deletion with its author. Whether that person was allowed to delete the entity is checked when the entity arrives. */
export class Tombstone extends Model {
  static override tableName = 'tombstones'
  static override idColumn = ['targetType', 'guid', 'deletedById']

  declare targetType: string
  declare guid: string
  declare deletedById: number
  /** Left by a moderator: it is not pruned. */
  declare permanent: boolean
  declare createdAt: Date

  declare deletedBy?: Person

  static override relationMappings = () => ({
    deletedBy: {
      relation: Model.BelongsToOneRelation,
      modelClass: Person,
      join: { from: 'tombstones.deletedById', to: 'people.id' },
    },
  })

  /** Inserts tombstones by the address of the deleter, with the type names of retractions. */
  static async insertMany(
    transaction: Knex.Transaction,
    tombstones: readonly { readonly type: string; readonly guid: string; readonly by: string }[],
  ): Promise<void> {
    if (tombstones.length > 0) await transaction.raw(NEW_TOMBSTONES_SQL, [JSON.stringify(tombstones)])
  }

  /** Inserts tombstones of moderators, which are not pruned. Returns those that did not exist, or would have been pruned. */
  static async insertPermanent(
    transaction: Knex.Transaction,
    tombstones: readonly { readonly type: string; readonly guid: string; readonly by: string }[],
  ): Promise<readonly PermanentTombstone[]> {
    return queryRows<PermanentTombstone>(transaction, NEW_PERMANENT_TOMBSTONES_SQL, [JSON.stringify(tombstones)])
  }

  /**
   * Takes back permanent tombstones. One whose entity is no longer stored was retracted by its author in the meantime, and one that existed
   * before the action is not its own: both stay as those of a retraction, which are pruned.
   */
  static async takeBackPermanent(
    transaction: Knex.Transaction,
    tombstones: readonly PermanentTombstone[],
  ): Promise<void> {
    if (tombstones.length === 0) return
    const tombstonesJson = JSON.stringify(tombstones)
    await transaction.raw(DELETED_UNRETRACTED_SQL, [tombstonesJson])
    await transaction.raw(ENDED_PERMANENCE_SQL, [tombstonesJson])
  }
}

export interface PermanentTombstone extends Pick<Tombstone, 'targetType' | 'guid' | 'deletedById'> {
  /** False: an ordinary tombstone became permanent. */
  readonly isNew: boolean
}

/**
 * SQL condition for insertions: one of these people has already retracted the entity. The caller has locked the guid, so that no
 * retraction can be stored in the meantime.
 */
export function isRetractedSql(kind: RetractableKind, guid: string, by: readonly string[]): string {
  return `exists (
    select from tombstones
    where target_type in (${namesInRetractions(kind)
      .map((name) => `'${name}'`)
      .join(', ')})
      -- An expression keeps the index on the deleter out, which would read all deletions of this person.
      and tombstones.guid = ${guid} and deleted_by_id + 0 in (${by.join(', ')})
  )`
}

const INPUT_TOMBSTONES_SQL = `
  select input.type, input.guid, people.id
  from json_to_recordset(?::json) as input(type text, guid text, "by" text)
  ${rowByRowSql('people', `people.address = input."by"`)}`

const NEW_TOMBSTONES_SQL = `
  insert into tombstones (target_type, guid, deleted_by_id)
  ${INPUT_TOMBSTONES_SQL}
  order by 1, 2, 3
  on conflict do nothing`

const NEW_PERMANENT_TOMBSTONES_SQL = `
  insert into tombstones (target_type, guid, deleted_by_id, permanent)
  select *, true from (${INPUT_TOMBSTONES_SQL}) as input
  order by 1, 2, 3
  on conflict (target_type, guid, deleted_by_id) do update set permanent = true where not tombstones.permanent
  returning target_type as "targetType", guid, deleted_by_id as "deletedById", xmax = 0 as "isNew"`

const PERMANENT_TOMBSTONES_SQL = `
  json_to_recordset(?::json) as input("targetType" text, guid text, "deletedById" bigint, "isNew" boolean)
  where tombstones.target_type = input."targetType" and tombstones.guid = input.guid
    and tombstones.deleted_by_id = input."deletedById"`

const isStored = Object.entries(RETRACTED_RECORDS).map(([name, kind]) => {
  const { table } = RECORD_TABLES[kind]
  return `when '${name}' then exists (select from ${table} where ${table}.guid = input.guid)`
})

const DELETED_UNRETRACTED_SQL = `
  delete from tombstones using ${PERMANENT_TOMBSTONES_SQL} and input."isNew" is not false and case input."targetType"
    ${isStored.join('\n    ')}
  end`

const ENDED_PERMANENCE_SQL = `
  update tombstones set permanent = false from ${PERMANENT_TOMBSTONES_SQL}`
