import { isUtf8 } from 'node:buffer'
import { Transform } from 'node:stream'

/** Changes a field of a row. `id` is the key of the row. Null is the null of the database. */
export type ChangeField = (text: string, id: number) => string | null

export interface RowChanges {
  /** Position of the key. */
  readonly key: number
  /** Changed fields by position. */
  readonly fields: ReadonlyMap<number, ChangeField>
}

export interface CountedLines {
  readonly stream: Transform
  /** Rows whose bytes were not valid text of PostgreSQL. */
  readonly repaired: () => number
}

const NEWLINE = 0x0a
const NUL = 0

/** Changes fields of rows in the text format of COPY, and replaces bytes that are not UTF-8, and NUL, by U+FFFD. */
export function transformCopyRows({ key, fields }: RowChanges): CountedLines {
  let rest = Buffer.alloc(0)
  let repairedRows = 0
  const changeLine = (line: Buffer): string => {
    const hasNul = line.includes(NUL)
    if (hasNul || !isUtf8(line)) repairedRows += 1
    const decodedLine = line.toString('utf8')
    const text = hasNul ? decodedLine.replaceAll('\0', '\ufffd') : decodedLine
    if (fields.size === 0) return text
    const values = text.split('\t')
    const id = Number(values[key])
    for (const [index, change] of fields) {
      const value = values[index]
      if (value !== undefined && value !== '\\N') values[index] = encodeField(change(decodeField(value), id))
    }
    return values.join('\t')
  }
  const stream = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      const bytes = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
      const lines: string[] = []
      let start = 0
      for (let end = bytes.indexOf(NEWLINE); end !== -1; end = bytes.indexOf(NEWLINE, start)) {
        lines.push(changeLine(bytes.subarray(start, end)))
        start = end + 1
      }
      rest = Buffer.from(bytes.subarray(start))
      done(null, lines.length === 0 ? undefined : `${lines.join('\n')}\n`)
    },
    flush(done) {
      done(null, rest.length === 0 ? undefined : `${changeLine(rest)}\n`)
    },
  })
  return { stream, repaired: () => repairedRows }
}

const ESCAPES: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' }
const ESCAPED: Readonly<Record<string, string>> = {
  '\\': '\\\\',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
}

/** PostgreSQL writes these escapes only, and no octal ones. */
function decodeField(field: string): string {
  return field.includes('\\') ? field.replace(/\\(.)/gs, (_, character) => ESCAPES[character] ?? character) : field
}

/** A field of a row in the text format of COPY. */
function encodeField(text: string | null): string {
  return text === null ? '\\N' : text.replace(/[\\\n\r\t]/g, (character) => ESCAPED[character] ?? character)
}
