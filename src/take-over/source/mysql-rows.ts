import { Readable } from 'node:stream'
import type { ColumnType } from './source-tables.js'

/** A row as the server has sent it: the bytes of each field, or null. */
export type MysqlRow = readonly (Buffer | null)[]

const NULL = '\\N'
/** The character `0`. */
const ZERO = 0x30

/** Bytes as characters of Latin 1, so that bytes that are not text are unchanged as well. */
type WriteField = (bytes: Buffer) => string

const ESCAPED: Readonly<Record<string, string>> = { '\\': '\\\\', '\n': '\\n', '\r': '\\r', '\t': '\\t' }

const writeText: WriteField = (bytes) => {
  const text = bytes.toString('latin1')
  return /[\\\n\r\t]/.test(text) ? text.replace(/[\\\n\r\t]/g, (character) => ESCAPED[character] ?? character) : text
}

const writeTime: WriteField = (bytes) => {
  const text = bytes.toString('latin1')
  return isOnCalendar(text.slice(0, 10)) ? text : NULL
}

/** MySQL keeps days that do not exist: the year, the month or the day may be zero, and depending on its mode months have 31 days. */
function isOnCalendar(day: string): boolean {
  if (day.startsWith('0000') || day.includes('-00')) return false
  const [year = 0, month = 0, date = 0] = day.split('-').map(Number)
  return date <= 28 || new Date(Date.UTC(year, month - 1, date)).getUTCDate() === date
}

/** A number, or a bit. */
const writeBoolean: WriteField = (bytes) => (bytes.every((byte) => byte === 0 || byte === ZERO) ? 'f' : 't')

const WRITERS: Readonly<Record<ColumnType, WriteField>> = {
  int: (bytes) => bytes.toString('latin1'),
  bool: writeBoolean,
  time: writeTime,
  date: writeTime,
  text: writeText,
  json: writeText,
  yaml: writeText,
  sealed: writeText,
  hashed: writeText,
}

const CHUNK_CHARACTERS = 65_536

/** The rows as lines of the text format of COPY. */
export function copyLines(rows: AsyncIterable<MysqlRow>, types: readonly ColumnType[]): Readable {
  return Readable.from(chunksOf(rows, types), { objectMode: false })
}

async function* chunksOf(rows: AsyncIterable<MysqlRow>, types: readonly ColumnType[]): AsyncGenerator<Buffer> {
  const writers = types.map((type) => WRITERS[type])
  let pending = ''
  for await (const row of rows) {
    for (const [index, write] of writers.entries()) {
      const bytes = row[index] ?? null
      pending += `${index === 0 ? '' : '\t'}${bytes === null ? NULL : write(bytes)}`
    }
    pending += '\n'
    if (pending.length < CHUNK_CHARACTERS) continue
    yield Buffer.from(pending, 'latin1')
    pending = ''
  }
  if (pending !== '') yield Buffer.from(pending, 'latin1')
}
