import { PassThrough } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as pause } from 'node:timers/promises'
import type pg from 'pg'
import { copyIn } from '../../persistence/database/copy.js'
import type { ReportProgress } from '../../persistence/operations/progress.js'
import type { Secrets } from '../../services/services.js'
import { shareTasks } from '../share-tasks.js'
import type { BlockMark, KeyRange, ReadBlock, Source } from '../source/source.js'
import { SOURCE_TABLES, type SourceTable } from '../source/source-tables.js'
import { createRowChanges } from './changed-columns.js'
import { transformCopyRows } from './copy-text.js'
import {
  countRepairedRows,
  createStaging,
  listStagedBlocks,
  markBlock,
  recordSourceTable,
  type StagedBlock,
  stagingTable,
} from './staging-tables.js'

/** Rows of a block. */
const BLOCK_ROWS = 10_000
/** Blocks whose boundaries one statement lists. */
const BLOCK_BATCH_SIZE = 100
const BEFORE_ALL_KEYS = -1
/**
 * Long texts are compressed by LZ4 where the server has it. PostgreSQL's own method takes more than half of the processor time of a row
 * of 2 KB. The build moves the compressed texts into the tables of the pod.
 */
const COMPRESS_FAST_SQL = `
  select set_config(name, 'lz4', false) from pg_settings where name = 'default_toast_compression' and 'lz4' = any(enumvals)`

export interface CopyOptions {
  readonly secrets: Secrets
  /** Rows a second at most. */
  readonly rate: number | undefined
  readonly signal: AbortSignal
  readonly report: ReportProgress
}

export interface CopiedRows {
  /** Rows that were compared, copied ones included. */
  readonly compared: number
  readonly copied: number
  /** All copied rows, also those of earlier runs, in which bytes that are not UTF-8, or NUL, were replaced. */
  readonly repaired: number
  readonly seconds: number
}

/** One session of the source with one of the target. */
export interface SessionPair {
  readonly source: Source
  readonly target: pg.Client
}

interface Task {
  readonly table: SourceTable
  readonly block: KeyRange
  readonly known: BlockMark | undefined
}

/**
 * Brings the staging tables up to the state of the source: compares all blocks that were copied before, and copies changed and new
 * ones. A block and its mark are committed together, so that a killed run continues.
 */
export async function copySource(
  pairs: readonly [SessionPair, ...SessionPair[]],
  options: CopyOptions,
): Promise<CopiedRows> {
  const [{ source, target }] = pairs
  await createStaging(target)
  // Rows and marks are in unlogged tables, which a crash of the server empties anyway.
  for (const pair of pairs) await pair.target.query('set synchronous_commit = off')
  for (const pair of pairs) await pair.target.query(COMPRESS_FAST_SQL)
  const needsRepair = (await source.encoding()) !== 'UTF8'
  let total = 0
  for (const table of SOURCE_TABLES) {
    const { rows } = await source.countRows(table.name)
    total += rows
    await recordSourceTable(target, { name: table.name, rows, lastKey: await source.lastKey(table) })
  }
  const began = performance.now()
  const done = { compared: 0, copied: 0 }
  const copyTask = async (pair: SessionPair, task: Task) => {
    const { rows, isCopied } = await copyBlock(pair, task, { ...options, needsRepair })
    done.compared += rows
    if (isCopied) done.copied += rows
    options.report({ step: 'rows', done: done.compared, total: Math.max(total, done.compared) })
    await keepRate(options, done.compared, began)
  }
  for (const table of SOURCE_TABLES) {
    for await (const tasks of listTasks(source, target, table)) await shareTasks(pairs, tasks, options.signal, copyTask)
  }
  return { ...done, repaired: await countRepairedRows(target), seconds: (performance.now() - began) / 1_000 }
}

/** The known blocks of a table with the keys between them, then its new keys. */
async function* listTasks(source: Source, target: pg.Client, table: SourceTable): AsyncGenerator<readonly Task[]> {
  const stagedBlocks = await listStagedBlocks(target, table)
  yield listKnownTasks(table, stagedBlocks)
  for (let after = stagedBlocks.at(-1)?.upTo ?? BEFORE_ALL_KEYS; ; ) {
    const ends = await source.listBlockEnds(table, after, { rows: BLOCK_ROWS, blocks: BLOCK_BATCH_SIZE })
    if (ends.length === 0) return
    const starts = [after, ...ends]
    yield ends.map((upTo, index) => ({ table, block: { after: starts[index] ?? after, upTo }, known: undefined }))
    after = ends.at(-1) ?? after
  }
}

/** A killed run may have committed a block over one pair of sessions while another pair had not committed the block before it. */
function listKnownTasks(table: SourceTable, staged: readonly StagedBlock[]): readonly Task[] {
  return staged.flatMap(({ rows, fingerprint, ...block }, index): readonly Task[] => {
    const before = staged[index - 1]?.upTo ?? BEFORE_ALL_KEYS
    const known = { table, block, known: { rows, fingerprint } }
    return before < block.after
      ? [{ table, block: { after: before, upTo: block.after }, known: undefined }, known]
      : [known]
  })
}

async function copyBlock(
  { source, target }: SessionPair,
  { table, block, known }: Task,
  options: CopyOptions & { readonly needsRepair: boolean },
): Promise<{ readonly rows: number; readonly isCopied: boolean }> {
  let copied = { rows: 0, isCopied: false }
  await source.readBlock(table, {
    block,
    known,
    async use(read) {
      const isCopied = read.openLines !== undefined
      if (isCopied) await replaceBlock(target, { table, block }, read, options)
      copied = { rows: read.rows, isCopied }
    },
  })
  return copied
}

async function replaceBlock(
  target: pg.Client,
  { table, block }: Pick<Task, 'table' | 'block'>,
  { rows, fingerprint, openLines }: ReadBlock,
  { secrets, signal, needsRepair }: CopyOptions & { readonly needsRepair: boolean },
): Promise<void> {
  if (openLines === undefined) return
  const changes = createRowChanges(table, secrets)
  const transformation = needsRepair || changes.fields.size > 0 ? transformCopyRows(changes) : undefined
  const columns = Object.keys(table.columns).map((name) => `"${name}"`)
  await target.query('begin')
  try {
    await target.query(`delete from ${stagingTable(table)} where "${table.key}" > $1 and "${table.key}" <= $2`, [
      block.after,
      block.upTo,
    ])
    const input = copyIn(target, `copy ${stagingTable(table)} (${columns.join(', ')}) from stdin`)
    await pipeline(openLines(), transformation?.stream ?? new PassThrough(), input, { signal })
    if (input.rowCount !== rows) throw new Error(`${table.name}: ${input.rowCount} rows were copied, not ${rows}.`)
    await markBlock(target, table, { ...block, rows, fingerprint, repaired: transformation?.repaired() ?? 0 })
    await target.query('commit')
  } catch (error) {
    await target.query('rollback').catch(() => undefined)
    throw error
  }
}

async function keepRate({ rate, signal }: CopyOptions, rows: number, began: number): Promise<void> {
  if (rate === undefined) return
  const early = (rows / rate) * 1_000 - (performance.now() - began)
  if (early > 0) await pause(early, undefined, { signal })
}
