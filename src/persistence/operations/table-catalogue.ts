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

/** Tables with triggers other than those of foreign keys. */
export async function listTablesWithTriggers(session: Session): Promise<readonly string[]> {
  const { rows } = await session.query<{ name: string }>(`
    select distinct relname as name from pg_trigger join pg_class as class on class.oid = tgrelid
    where relnamespace = 'public'::regnamespace and not tgisinternal order by 1`)
  return rows.map(({ name }) => name)
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

/**
 * Foreign keys, unique constraints of all tables but some, and the indexes that belong to no constraint. Foreign keys are dropped first
 * and made last: they depend on the others.
 */
export async function listKeysAndIndexes(
  session: Session,
  withUniques: readonly string[] = [],
): Promise<{
  readonly keys: readonly Definition[]
  readonly uniques: readonly Definition[]
  readonly indexes: readonly Definition[]
}> {
  const keys = await listConstraints(session, 'f', [])
  const uniques = await listConstraints(session, 'u', withUniques)
  const indexes = await session.query<Definition>(`
    select format('drop index %s', indexrelid::regclass) as drop, pg_get_indexdef(indexrelid) as create
    from pg_index join pg_class as class on class.oid = indrelid
    where relnamespace = 'public'::regnamespace and relkind = 'r' and relname not like 'knex\\_migrations%'
      and not exists (select from pg_constraint where conindid = indexrelid and contype in ('p', 'u', 'x'))
    order by indexrelid::regclass::text`)
  return { keys, uniques, indexes: indexes.rows }
}

async function listConstraints(
  session: Session,
  type: 'f' | 'u',
  exceptions: readonly string[],
): Promise<readonly Definition[]> {
  const { rows } = await session.query<Definition>(
    `select
       format('alter table %s drop constraint %I', conrelid::regclass, conname) as drop,
       format('alter table %s add constraint %I %s', conrelid::regclass, conname, pg_get_constraintdef(constraints.oid)) as create
     from pg_constraint as constraints join pg_class as class on class.oid = conrelid
     where contype = $1 and connamespace = 'public'::regnamespace and relname <> all($2::text[])
       and (contype = 'f' or relpersistence = 'p' and relname not like 'knex\\_migrations%')
     order by conrelid::regclass::text, conname`,
    [type, exceptions],
  )
  return rows
}

/** Names of tables or columns as a list in a statement. */
export function quoteNames(names: readonly string[]): string {
  return names.map((name) => `"${name.replaceAll('"', '""')}"`).join(', ')
}
