import type { Readable } from 'node:stream'
import type { SourceTable } from './source-tables.js'

/** A part of a table, which is one block of the copy: keys above `after`, up to and including `upTo`. */
export interface KeyRange {
  readonly after: number
  readonly upTo: number
}

/** The content of a block. Equal contents have equal fingerprints, whatever the order of the rows. */
export interface BlockMark {
  readonly rows: number
  readonly fingerprint: string
}

/** A table of the source, as it is there. */
export interface FoundTable {
  readonly name: string
  readonly columns: readonly string[]
  readonly bytes: number
}

export interface ReadBlock extends BlockMark {
  /** Reads the rows as lines of the text format of COPY, with the columns of the table in their order. Undefined: the mark is known. */
  readonly openLines: (() => Readable) | undefined
}

export interface BlockReading {
  readonly block: KeyRange
  /** The mark of the block when it was copied last. */
  readonly known: BlockMark | undefined
  readonly use: (read: ReadBlock) => Promise<void>
}

/** The old database. It is only read, in sessions that may not write, by transactions that end within a minute. */
export interface Source {
  readonly kind: 'postgres' | 'mysql'
  /** Identifies server and database. */
  identity(): Promise<string>
  encoding(): Promise<string>
  listTables(): Promise<readonly FoundTable[]>
  listVersions(): Promise<readonly string[]>
  /** A table that cannot be counted within the time of a transaction is estimated by the statistics of the server. */
  countRows(table: string): Promise<{ readonly rows: number; readonly isEstimate: boolean }>
  /** The last value of the counter of a key; 0 if it has none. */
  lastKey(table: SourceTable): Promise<number>
  /** The last keys of the next blocks above a key. None: there are no more rows. */
  listBlockEnds(
    table: SourceTable,
    after: number,
    size: { readonly rows: number; readonly blocks: number },
  ): Promise<readonly number[]>
  /** Calls `use` with count, fingerprint and rows of a block, all of one snapshot. Without rows if the mark equals `known`. */
  readBlock(table: SourceTable, reading: BlockReading): Promise<void>
  /** Counts the rows of a statement, and lists the first texts of its column `example`. */
  countExamples(
    select: string,
    values: readonly unknown[],
    max: number,
  ): Promise<{ readonly count: number; readonly examples: readonly string[] }>
  /** A statement has taken longer than a transaction may. */
  isTimeout(error: unknown): boolean
  /** Rows of a statement in the language of PostgreSQL, for reports. */
  query<Row extends object>(statement: string, values?: readonly unknown[]): Promise<readonly Row[]>
  close(): Promise<void>
}
