import type { Knex } from 'knex'
import pg from 'pg'
import { stateByOwner } from '../../concurrency/state-by-owner.js'

/** A statement that took long. The text has no values. */
export interface SlowStatement {
  readonly text: string
  readonly count: number
  readonly maxMs: number
  /** Time of the last run, in ISO 8601. */
  readonly lastAt: string
}

/** Milliseconds from which a statement is slow. Waiting for a lock counts. */
const SLOW_MS = 500
/** Texts that are kept; the one that was slow the longest ago is dropped. */
const TEXTS = 50
const TEXT_CHARACTERS = 500
const RETENTION_MS = 3_600_000

const sampleOf = stateByOwner<Knex, Map<string, SlowStatement>>()

/** Measures each statement of a pool from now on. Called once for a database. */
export function watchSlowStatements(db: Knex, slowMs = SLOW_MS): void {
  const sample = sampleOf(db, () => new Map())
  db.client.pool.on('createSuccess', (_id: number, connection: pg.Client) => {
    measureStatements(connection, (text, ms) => {
      if (ms >= slowMs) addToSample(sample, text, ms)
    })
  })
}

/** The slow statements of this process in the last hour, those that took longest first. */
export function listSlowStatements(db: Knex, now: number = Date.now()): readonly SlowStatement[] {
  return [...sampleOf(db, () => new Map()).values()]
    .filter(({ lastAt }) => now - Date.parse(lastAt) < RETENTION_MS)
    .toSorted((one, other) => other.maxMs - one.maxMs)
}

function addToSample(sample: Map<string, SlowStatement>, statement: string, ms: number): void {
  const text = statement.replaceAll(/\s+/g, ' ').trim().slice(0, TEXT_CHARACTERS)
  const earlier = sample.get(text)
  sample.delete(text) // the order of the map is that of the last time
  const maxMs = Math.max(earlier?.maxMs ?? 0, Math.round(ms))
  sample.set(text, { text, count: (earlier?.count ?? 0) + 1, maxMs, lastAt: new Date().toISOString() })
  const [oldest] = sample.keys()
  if (sample.size > TEXTS && oldest !== undefined) sample.delete(oldest)
}

type Report = (text: string, ms: number) => void

/** Values are passed separately from the text, so that the text is the same for all of them. Cursors and copies are not measured. */
function measureStatements(connection: pg.Client, report: Report): void {
  const query = (...given: unknown[]): unknown => Reflect.apply(pg.Client.prototype.query, connection, given)
  const measuredQuery = (...given: unknown[]): unknown => {
    const text = textOf(given[0])
    if (text === undefined) return query(...given)
    const began = performance.now()
    const end = () => report(text, performance.now() - began)
    const last = given.at(-1)
    if (typeof last === 'function') {
      const callback = (...results: unknown[]) => {
        end()
        return last(...results)
      }
      return query(...given.slice(0, -1), callback)
    }
    const result = query(...given)
    if (result instanceof Promise) result.then(end, end)
    return result
  }
  connection.query = measuredQuery as pg.Client['query']
}

function textOf(config: unknown): string | undefined {
  if (typeof config === 'string') return config
  if (typeof config !== 'object' || config === null || 'submit' in config) return undefined
  return 'text' in config && typeof config.text === 'string' ? config.text : undefined
}
