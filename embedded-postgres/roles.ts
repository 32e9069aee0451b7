import { createHmac } from 'node:crypto'
import { Client } from 'pg'
import { type Cluster, SUPERUSER } from './cluster.js'

/** Who connects where. */
export interface Login {
  readonly user: string
  readonly password: string
  readonly database: string
}

/** The role of web, workers and commands: it owns the database, and has no rights outside of it. */
const APPLICATION_ROLE = 'pod_app'
const DATABASE = 'pod'
const MAINTENANCE_DATABASE = 'postgres'
/** Processes of a killed pod may still use tables whose owner changes. */
const LOCK_LIMIT = '10s'

export function superuserLogin(cluster: Cluster, database = MAINTENANCE_DATABASE): Login {
  return { user: SUPERUSER, password: cluster.password, database }
}

/** The password follows from that of the superuser, so that a restored backup needs no second file; the reverse is not possible. */
export function applicationLogin(cluster: Cluster): Login {
  const password = createHmac('sha256', cluster.password).update(APPLICATION_ROLE).digest('base64url')
  return { user: APPLICATION_ROLE, password, database: DATABASE }
}

export function buildUrl({ user, password, database }: Login, port: number): string {
  return `postgres://${user}:${password}@127.0.0.1:${port}/${database}`
}

export function superuserUrl(cluster: Cluster, port: number): string {
  return buildUrl(superuserLogin(cluster, DATABASE), port)
}

/**
 * Makes the role, the database and the extension of the pod where they are missing. Gives the role what the superuser owns in
 * a database that an earlier version has made. A standby gets all of this from its primary.
 */
export async function prepareDatabase(superuser: Client, cluster: Cluster, port: number): Promise<void> {
  const { rows } = await superuser.query<{ standby: boolean }>('select pg_is_in_recovery() as standby')
  if (rows[0]?.standby) return
  await prepareRole(superuser, cluster)
  await createOwnedDatabase(superuser)
  const client = new Client({ connectionString: superuserUrl(cluster, port), connectionTimeoutMillis: 5_000 })
  client.on('error', () => undefined) // the statement that needs the connection fails
  await client.connect()
  try {
    await client.query('create extension if not exists pg_trgm')
    await reassignObjects(client)
  } finally {
    await client.end()
  }
}

async function prepareRole(superuser: Client, cluster: Cluster): Promise<void> {
  const { rowCount } = await superuser.query('select from pg_roles where rolname = $1', [APPLICATION_ROLE])
  await superuser.query(`${rowCount === 0 ? 'create' : 'alter'} role ${APPLICATION_ROLE}
    with login nosuperuser nocreatedb nocreaterole noreplication nobypassrls
    password '${applicationLogin(cluster).password}'`)
}

async function createOwnedDatabase(superuser: Client): Promise<void> {
  const { rows } = await superuser.query<{ owner: string }>(
    'select datdba::regrole::text as owner from pg_database where datname = $1',
    [DATABASE],
  )
  const owner = rows[0]?.owner
  if (owner === undefined) await superuser.query(`create database ${DATABASE} owner ${APPLICATION_ROLE}`)
  else if (owner !== APPLICATION_ROLE) await superuser.query(`alter database ${DATABASE} owner to ${APPLICATION_ROLE}`)
}

/** All or nothing. `reassign owned` refuses this superuser, because it owns the system's own objects too. */
async function reassignObjects(client: Client): Promise<void> {
  await client.query(`set lock_timeout = '${LOCK_LIMIT}'`)
  await client.query(`set search_path = ''`) // names come out qualified
  const { rows } = await client.query<{ kind: string; name: string }>(SUPERUSER_OBJECTS_SQL)
  if (rows.length === 0) return
  const statements = rows.map(({ kind, name }) => `alter ${kind} ${name} owner to ${APPLICATION_ROLE};`)
  await client.query(`begin; ${statements.join('\n')} commit`)
}

/**
 * Objects that the superuser owns and `initdb` has not created (ids from 16384 on). Members of extensions, and sequences of columns,
 * are left out: they follow their extension or table.
 */
const SUPERUSER_OBJECTS_SQL = `
  with objects (catalog, id, owner, kind, name) as (
    select 'pg_namespace'::regclass, oid, nspowner, 'schema', oid::regnamespace::text from pg_namespace
    union all
    select 'pg_class'::regclass, oid, relowner,
           case relkind when 'S' then 'sequence' when 'v' then 'view' when 'm' then 'materialized view' else 'table' end,
           oid::regclass::text
      from pg_class where relkind in ('r', 'p', 'S', 'v', 'm')
    union all
    select 'pg_proc'::regclass, oid, proowner, case prokind when 'a' then 'aggregate' else 'routine' end, oid::regprocedure::text
      from pg_proc
    union all
    select 'pg_type'::regclass, type.oid, typowner, 'type', type.oid::regtype::text
      from pg_type as type left join pg_class as class on class.oid = typrelid
      where typtype in ('e', 'd', 'r') or class.relkind = 'c'
  )
  select kind, name from objects
  where id >= 16384 and owner = current_user::regrole and not exists (
    select from pg_depend where classid = catalog and objid = id and deptype in ('e', 'a', 'i')
  )
  order by kind, name`
