import type pg from 'pg'

/** A table of the pod as the catalogue describes it. */
export interface Table {
  readonly name: string
  /** The columns that can be written: without generated ones. */
  readonly columns: readonly string[]
  /** Estimated size of its rows. */
  readonly bytes: number
}

/** The counter of an identity column. */
export interface Sequence {
  readonly table: string
  readonly column: string
  readonly last: number
}

/** A definition that is dropped before rows are loaded, and made again afterwards. */
export interface Definition {
  readonly drop: string
  readonly create: string
}

type Session = Pick<pg.Client, 'query'>

/** The logged tables of the pod, the largest first. The tables of migrations are not included. */
export async function listTables(session: Session): Promise<readonly Table[]> {
  const { rows } = await session.query<Table>(`
    select class.relname as name, pg_table_size(class.oid)::float as bytes, (
      select array_agg(attname::text order by attnum) from pg_attribute
      where attrelid = class.oid and attnum > 0 and not attisdropped and attgenerated = ''
    ) as columns
    from pg_class as class
    where relnamespace = 'public'::regnamespace and relkind = 'r' and relpersistence = 'p'
      and relname not like 'knex\\_migrations%'
    order by bytes desc, name`)
  return rows
}

/** The last used values of all identity columns. */
export async function listSequences(session: Session): Promise<readonly Sequence[]> {
  const { rows } = await session.query<Sequence>(`
    select class.relname as table, attname as column, coalesce(
      pg_sequence_last_value(pg_get_serial_sequence(class.oid::regclass::text, attname)::regclass), 0
    )::float as last
    from pg_class as class join pg_attribute on attrelid = class.oid
    where relnamespace = 'public'::regnamespace and relkind = 'r' and attidentity <> '' and not attisdropped
    order by 1, 2`)
  return rows
}

/** Foreign keys, and the indexes that belong to no constraint. Keys come first: they depend on indexes. */
export async function listKeysAndIndexes(
  session: Session,
): Promise<{ readonly keys: readonly Definition[]; readonly indexes: readonly Definition[] }> {
  const keys = await session.query<Definition>(`
    select
      format('alter table %s drop constraint %I', conrelid::regclass, conname) as drop,
      format('alter table %s add constraint %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid)) as create
    from pg_constraint
    where contype = 'f' and connamespace = 'public'::regnamespace
    order by conrelid::regclass::text, conname`)
  const indexes = await session.query<Definition>(`
    select format('drop index %s', indexrelid::regclass) as drop, pg_get_indexdef(indexrelid) as create
    from pg_index join pg_class as class on class.oid = indrelid
    where relnamespace = 'public'::regnamespace and relkind = 'r' and relname not like 'knex\\_migrations%'
      and not exists (select from pg_constraint where conindid = indexrelid and contype in ('p', 'u', 'x'))
    order by indexrelid::regclass::text`)
  return { keys: keys.rows, indexes: indexes.rows }
}

/** The column list of a statement. */
export function quoted(names: readonly string[]): string {
  return names.map((name) => `"${name.replaceAll('"', '""')}"`).join(', ')
}
