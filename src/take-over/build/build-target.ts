import { createHash } from 'node:crypto'
import type pg from 'pg'
import { ALL_SCOPES } from '../../domain/accounts/scopes.js'
import { loadTables, setSequences } from '../../persistence/operations/load-tables.js'
import type { ReportProgress } from '../../persistence/operations/progress.js'
import { listSequences, quoteNames } from '../../persistence/operations/table-catalogue.js'
import type { Services } from '../../services/services.js'
import { SOURCE_TABLES } from '../source/source-tables.js'
import { stagingTable } from '../staging/staging-tables.js'
import { accountStatements } from './account-statements.js'
import { clientStatements } from './client-statements.js'
import { conversationStatements } from './conversation-statements.js'
import { insertSecrets } from './insert-secrets.js'
import { insertSubjects } from './insert-subjects.js'
import { interactionStatements } from './interaction-statements.js'
import { keepOldHandles } from './keep-old-handles.js'
import { peopleStatements } from './people-statements.js'
import { postStatements } from './post-statements.js'

/** Tables that are not of the old pod. */
const KEPT_TABLES = [
  'take_over',
  'pod_account',
  'signing_keys',
  'audit_entries',
  'backup_runs',
  'latest_release',
] as const
/** Tables with statements that rely on a unique constraint: `on conflict`. */
const TABLES_WITH_UNIQUES = ['pods', 'refresh_tokens'] as const

export interface BuildOptions {
  /** Paths of pictures that are files of this pod. */
  readonly ownPaths: readonly string[]
  readonly builtAt: Date
  readonly signal: AbortSignal
  readonly report: ReportProgress
}

/**
 * Empties the tables of the pod and fills them from the staging tables, in one transaction. It writes no notification, mail, outbox row
 * or message, and triggers do not run.
 */
export async function buildTarget(
  session: pg.Client,
  { config, secrets }: Pick<Services, 'config' | 'secrets'>,
  options: BuildOptions,
): Promise<void> {
  const { signal, report } = options
  const statements = [
    ...peopleStatements,
    ...accountStatements,
    insertSecrets,
    ...postStatements,
    ...interactionStatements,
    keepOldHandles,
    ...conversationStatements,
    ...clientStatements,
    insertSubjects,
  ]
  let loadedTables: readonly string[]
  await session.query('begin')
  try {
    await setSettings(session, { config, secrets }, options)
    await session.query(truncateMaps)
    // Without statistics, joins of large tables go row by row.
    await session.query(`analyze ${SOURCE_TABLES.map(stagingTable).join(', ')}`)
    loadedTables = await loadTables(
      session,
      { signal, report },
      async () => {
        for (const [index, statement] of statements.entries()) {
          signal.throwIfAborted()
          report({ step: 'statements', done: index, total: statements.length })
          if (typeof statement === 'string') await session.query(statement)
          else await statement(session, secrets)
        }
        await setCounters(session)
      },
      { kept: KEPT_TABLES, withUniques: TABLES_WITH_UNIQUES },
    )
    await session.query('commit')
  } catch (error) {
    await session.query('rollback').catch(() => undefined)
    throw error
  }
  await session.query(`analyze ${quoteNames(loadedTables)}`)
}

/** Empties the tables of the pod, without triggers, which would remove the pictures. */
export async function emptyTarget(session: pg.Client): Promise<void> {
  const none = { signal: new AbortController().signal, report: () => undefined }
  await session.query('begin')
  await loadTables(session, none, async () => undefined, { kept: KEPT_TABLES })
  await session.query('commit')
}

async function setSettings(
  session: pg.Client,
  { config, secrets }: Pick<Services, 'config' | 'secrets'>,
  { ownPaths, builtAt }: BuildOptions,
): Promise<void> {
  const values = {
    'take_over.host': config.host,
    'take_over.hostname': config.host.replace(/:[0-9]+$/, ''),
    'take_over.url': config.url.replace(/\/$/, ''),
    'take_over.copied_at': (await findCopyTime(session)) ?? builtAt.toISOString(),
    'take_over.built_at': builtAt.toISOString(),
    'take_over.own_paths': arrayText(ownPaths),
    'take_over.scopes': arrayText(ALL_SCOPES),
    // Ids of grants are in cookies and URLs, so they must not be guessed.
    'take_over.subject_key': createHash('sha256').update(secrets.mac('grants', 'take-over')).digest('hex'),
    // Sorts and hashes of large tables.
    work_mem: '64MB',
    // Joins of whole tables need the numbers of rows only, which a small sample shows.
    default_statistics_target: '20',
    // Compiling a statement takes longer than it saves.
    jit: 'off',
    maintenance_work_mem: '128MB',
  }
  for (const [name, value] of Object.entries(values))
    await session.query('select set_config($1, $2, true)', [name, value])
}

/** The time of the newest copied block. The first copy may be days older than content that came later. */
async function findCopyTime(session: pg.Client): Promise<string | undefined> {
  const { rows } = await session.query<{ copiedAt: Date | null }>(
    `select date_trunc('milliseconds', max(copied_at)) as "copiedAt" from take_over.copied_blocks`,
  )
  return rows[0]?.copiedAt?.toISOString()
}

function arrayText(items: readonly string[]): string {
  return `{${items.map((item) => `"${item.replace(/["\\]/g, '\\$&')}"`).join(',')}}`
}

const truncateMaps = `
  do $$
  declare name text;
  begin
    for name in select relname from pg_class where relnamespace = 'take_over'::regnamespace and relkind = 'r'
      and (relname like 'map\\_%' or relname in ('skipped_rows', 'sidekiq_jobs'))
    loop
      execute format('drop table take_over.%I', name);
    end loop;
  end $$;
  create unlogged table take_over.skipped_rows (source text collate "C" not null, id bigint not null, code text collate "C" not null);
  create index on take_over.skipped_rows (source, id)`

/** New rows get ids above all that the source has ever given: a deleted post's id leads nowhere for ever. */
async function setCounters(session: pg.Client): Promise<void> {
  const { rows } = await session.query<{ name: string; last: number }>(
    'select name, last_key::float as last from take_over.source_tables',
  )
  const names: Readonly<Record<string, string>> = {
    o_auth_applications: 'clients',
    o_auth_access_tokens: 'access_tokens',
  }
  const lastKeys = new Map(rows.map(({ name, last }) => [names[name] ?? name, last]))
  const sequences = await listSequences(session)
  await setSequences(
    session,
    sequences
      .filter(({ table }) => table !== 'take_over')
      .map((sequence) => ({ ...sequence, last: lastKeys.get(sequence.table) ?? 0 })),
  )
}
