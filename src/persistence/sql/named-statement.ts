import pg from 'pg'
import { prepareValue } from 'pg/lib/utils.js'

/** What the library knows of a connection and its types do not tell: texts, by the names under which the server has them. */
interface Prepared {
  readonly parsedStatements: Readonly<Record<string, string | undefined>>
}

interface Column {
  readonly name: string
  read(value: string): unknown
}

type Columns = readonly Column[]

/** By the name of the statement, as each connection has met them: another database may number its types in another way. */
const described = new WeakMap<pg.Connection, Map<string, Columns>>()

function describedTo(connection: pg.Connection): Map<string, Columns> {
  const known = described.get(connection) ?? new Map<string, Columns>()
  if (known.size === 0) described.set(connection, known)
  return known
}

type Row = Record<string, unknown>
type Callback = (error: Error | null, rows?: readonly Row[]) => void

/**
 * A statement that the server plans once for each connection. The library would copy it, and have the server describe what it
 * answers, each time; that takes longer than to run a small one.
 */
export class NamedStatement implements pg.Submittable {
  readonly name: string
  readonly values: readonly unknown[]
  /** The library puts one around it, which knows how long to wait. */
  callback: Callback
  #source: string | (() => string)
  readonly #written: (string | Buffer | null)[]
  readonly #rows: Row[] = []
  #columns: Columns | undefined
  #fault: Error | null = null

  /** The text may be a function: it is called when a connection sees the statement for the first time. */
  constructor(name: string, source: string | (() => string), values: readonly unknown[], callback: Callback) {
    this.name = name
    this.values = values
    this.callback = callback
    this.#source = source
    this.#written = values.map((value) => (Array.isArray(value) ? writeArray(value) : prepareValue(value)))
  }

  get text(): string {
    if (typeof this.#source === 'function') this.#source = this.#source()
    return this.#source
  }

  submit(connection: pg.Connection & Partial<Prepared>): Error | undefined {
    const { name } = this
    const known = connection.parsedStatements?.[name]
    if (known !== undefined && typeof this.#source === 'string' && known !== this.#source) {
      return new Error(`Another statement has the name "${name}".`)
    }
    const text = known ?? this.text
    this.#columns = known === undefined ? undefined : describedTo(connection).get(name)

    connection.stream.cork()
    if (known === undefined) connection.parse({ name, text, types: [] }, true)
    connection.bind({ statement: name, values: this.#written }, true)
    if (this.#columns === undefined) connection.describe({ type: 'P' }, true)
    connection.execute(null, true)
    connection.sync()
    connection.stream.uncork()
    return undefined
  }

  handleRowDescription({ fields }: { readonly fields: readonly pg.FieldDef[] }): void {
    this.#columns = fields.map(({ name, dataTypeID }) => ({ name, read: pg.types.getTypeParser(dataTypeID, 'text') }))
  }

  handleDataRow({ fields }: { readonly fields: readonly (string | null)[] }): void {
    try {
      const row: Row = {}
      this.#columns?.forEach(({ name, read }, place) => {
        const value = fields[place] ?? null
        row[name] = value === null ? null : read(value)
      })
      this.#rows.push(row)
    } catch (error) {
      this.#fault = error as Error // what reads a value throws nothing else
    }
  }

  handleCommandComplete(_message: unknown, connection: pg.Connection): void {
    describedTo(connection).set(this.name, this.#columns ?? [])
  }

  handleReadyForQuery(): void {
    this.callback(this.#fault, this.#rows)
  }

  handleError(error: Error): void {
    this.callback(error)
  }
}

const special = /["\\]/

/** As the library writes it, which looks at each element twice; most are names and numbers without anything to look for. */
function writeArray(values: readonly unknown[]): ReturnType<typeof prepareValue> {
  if (values.length === 0) return '{}'
  if (values.every((value) => typeof value === 'number')) return `{${values.join(',')}}`
  if (values.every((value) => typeof value === 'string') && !special.test(values.join(''))) {
    return `{"${values.join('","')}"}`
  }
  if (values.every(isOfOurEra)) return `{"${values.map((time) => time.toISOString()).join('","')}"}`
  return prepareValue(values)
}

/** The server reads such a year as it stands in the text. */
function isOfOurEra(value: unknown): value is Date {
  return value instanceof Date && value.getTime() >= FIRST_DAY && value.getTime() < AFTER_LAST_DAY
}

const FIRST_DAY = Date.parse('0001-01-01T00:00:00Z')
const AFTER_LAST_DAY = Date.UTC(10_000, 0)
