import type { Knex } from 'knex'
import { noteDone } from '../accounts/idempotency-keys.js'

/** Connection, transaction rollback, resources, operator. */
const OURS_BY_CLASS = ['08', '40', '53', '57']

const LOCK_NOT_AVAILABLE = '55P03'

/** A lock that was not to be had in time, and a transaction that was ended because it idled; then the network. */
const OURS_BY_CODE = [
  LOCK_NOT_AVAILABLE,
  '25P03',
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'ABORT_ERR',
]

const OURS_BY_NAME = ['KnexTimeoutError', 'AbortError', 'TimeoutError', 'ThreadsBusy']

/** What the driver throws without a code; knex puts the statement in front. */
const OURS_BY_MESSAGE = [
  'timeout expired',
  'Query read timeout',
  'Connection terminated',
  'Connection terminated unexpectedly',
  'Connection terminated due to connection timeout',
  'Client has encountered a connection error and is not queryable',
  'Client was closed and is not queryable',
]

/** The database, or the threads, are away or busy with somebody else: nothing is wrong with what was asked, and it may work later. */
export function isDatabaseUnavailable(error: unknown): boolean {
  const { code, name, message } = factsOf(error)
  return (
    OURS_BY_CODE.includes(code) ||
    (SQL_STATE.test(code) && OURS_BY_CLASS.includes(code.slice(0, 2))) ||
    OURS_BY_NAME.includes(name) ||
    OURS_BY_MESSAGE.some((text) => message === text || message.endsWith(` - ${text}`))
  )
}

/**
 * The statement ran into its time limit, or into a limit of memory or locks. The database may be busy, or the work may be too
 * much for one transaction: a second failure says that it is the work.
 */
export function isResourceLimitError(error: unknown): boolean {
  return TOO_MUCH.includes(factsOf(error).code)
}

const QUERY_CANCELED = '57014'
const OUT_OF_MEMORY = '53200'
const TOO_MUCH = [QUERY_CANCELED, OUT_OF_MEMORY]

/** Without what knex puts in front of what the driver said: the statement, perhaps with values. */
export function messageWithoutStatement(message: string): string {
  return message.split(' - ').at(-1) ?? message
}

/** Wrong password, no such user or database, no right: it is there and will not have us, today or tomorrow. */
export function isDatabaseAccessDenied(error: unknown): boolean {
  return ['28P01', '28000', '3D000', '42501'].includes(factsOf(error).code)
}

/** Two transactions stood in each other's way, and this one was given up. */
export function isDeadlock(error: unknown): boolean {
  return ['40P01', '40001'].includes(factsOf(error).code)
}

/** What a new row refers to was there when it was looked for, and is not any more. */
export function isForeignKeyViolation(error: unknown): boolean {
  return factsOf(error).code === '23503'
}

/** The row was there already; with a key, only if that is the one that said so. */
export function isUniqueViolation(error: unknown, key?: string): boolean {
  const { code, constraint } = factsOf(error)
  return code === '23505' && (key === undefined || key === constraint)
}

const ATTEMPTS = 4

/** A transaction that is run again at once, up to three times, when another one stood in its way or took something from under it. */
export async function inTransaction<Result>(
  db: Knex,
  work: (transaction: Knex.Transaction) => Promise<Result>,
): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await db.transaction(async (transaction) => {
        const result = await work(transaction)
        await noteDone(transaction)
        return result
      })
    } catch (error) {
      if (attempt === ATTEMPTS || !(isDeadlock(error) || isForeignKeyViolation(error))) throw error
    }
  }
}

/**
 * Work that is begun again when a lock was not to be had in time. For what another pod has given away: it should not be asked a
 * second time because somebody here took long.
 */
export async function retryAfterLockTimeout<Result>(work: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await work()
    } catch (error) {
      if (attempt === ATTEMPTS || factsOf(error).code !== LOCK_NOT_AVAILABLE) throw error
    }
  }
}

const SQL_STATE = /^[0-9][0-9A-Z]{4}$/

interface Facts {
  readonly code: string
  readonly name: string
  readonly message: string
  readonly constraint: string
}

/** Objection keeps the driver's error inside its own. Causes are left alone: another pod that is away is not our database. */
function factsOf(error: unknown): Facts {
  const native = fieldOf(error, 'nativeError') ?? error
  return {
    code: textOf(native, 'code'),
    name: textOf(native, 'name'),
    message: textOf(native, 'message'),
    constraint: textOf(native, 'constraint'),
  }
}

function textOf(error: unknown, field: string): string {
  const value = fieldOf(error, field)
  return typeof value === 'string' ? value : ''
}

function fieldOf(error: unknown, field: string): unknown {
  return typeof error === 'object' && error !== null ? Reflect.get(error, field) : undefined
}
