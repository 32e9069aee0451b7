import { Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { Source } from '../source/source.js'
import { SOURCE_TABLES, type SourceTable } from '../source/source-tables.js'

/** Milliseconds for which rows are read. */
const MEASURED_MS = 20_000
const BLOCK_ROWS = 10_000
const BLOCKS_OF_TABLE = 4
/** Measured times for each second in which all rows are only read, see docs/measurements/take-over.md. */
const COPY_FACTOR = 2
const SWITCH_FACTOR = 10

interface CountedTable {
  readonly name: string
  readonly rows: number
  readonly bytes: number
}

/** Expected seconds of the steps. */
export interface TakeOverTimes {
  readonly copy: number
  readonly switch: number
}

/** Reads blocks of the largest tables as the copy does, and derives the times of the steps from the time of a row. */
export async function estimateTimes(
  source: Source,
  counted: readonly CountedTable[],
  rate: number | undefined,
): Promise<TakeOverTimes> {
  const copiedTables = SOURCE_TABLES.flatMap((table) => {
    const found = counted.find(({ name }) => name === table.name)
    return found === undefined ? [] : [{ ...found, table }]
  })
  const total = copiedTables.reduce((sum, { rows }) => sum + rows, 0)
  const largestFirst = copiedTables.toSorted((one, other) => other.bytes - one.bytes)
  const began = performance.now()
  let read = 0
  for (const { table } of largestFirst) {
    if (performance.now() - began > MEASURED_MS) break
    read += await readBlocks(source, table, began + MEASURED_MS)
  }
  if (read === 0) return { copy: 0, switch: 0 }
  const seconds = ((performance.now() - began) / 1_000 / read) * total
  const copy = Math.max(seconds * COPY_FACTOR, rate === undefined ? 0 : total / rate)
  return { copy: Math.ceil(copy), switch: Math.ceil(seconds * SWITCH_FACTOR) }
}

/** Returns the number of read rows. A block that takes longer than a transaction may is left out. */
async function readBlocks(source: Source, table: SourceTable, until: number): Promise<number> {
  let read = 0
  try {
    const ends = await source.listBlockEnds(table, -1, { rows: BLOCK_ROWS, blocks: BLOCKS_OF_TABLE })
    for (const [index, upTo] of ends.entries()) {
      if (performance.now() > until) break
      await source.readBlock(table, {
        block: { after: ends[index - 1] ?? -1, upTo },
        known: undefined,
        async use({ rows, openLines }) {
          if (openLines !== undefined) await pipeline(openLines(), new Writable({ write: (_chunk, _, done) => done() }))
          read += rows
        },
      })
    }
  } catch (error) {
    if (!source.isTimeout(error)) throw error
  }
  return read
}
