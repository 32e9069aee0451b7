/** SQLSTATE classes: connection, transaction rollback, insufficient resources, operator intervention. */
const UNAVAILABLE_CLASSES = ['08', '40', '53', '57']

const LOCK_NOT_AVAILABLE = '55P03'

/** Lock timeout, idle transaction timeout, and network errors. */
const UNAVAILABLE_CODES = [
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

const UNAVAILABLE_NAMES = ['KnexTimeoutError', 'AbortError', 'TimeoutError', 'ThreadsBusy']

/** Errors that the driver throws without a code. Knex puts the statement in front. */
const UNAVAILABLE_MESSAGES = [
  'timeout expired',
  'Query read timeout',
  'Connection terminated',
  'Connection terminated unexpectedly',
  'Connection terminated due to connection timeout',
  'Client has encountered a connection error and is not queryable',
  'Client was closed and is not queryable',
]

/** The database or the thread pool is down or overloaded. The request is not at fault, and a retry may succeed. */
export function isDatabaseUnavailable(error: unknown): boolean {
  const { code, name, message } = fieldsOf(error)
  return (
    UNAVAILABLE_CODES.includes(code) ||
    (SQL_STATE.test(code) && UNAVAILABLE_CLASSES.includes(code.slice(0, 2))) ||
    UNAVAILABLE_NAMES.includes(name) ||
    UNAVAILABLE_MESSAGES.some((text) => message === text || message.endsWith(` - ${text}`))
  )
}

/**
 * The statement exceeded its time limit or the memory of the server. Either the database is busy or the work is too much for one
 * transaction. If it fails twice, the work is too much.
 */
export function isResourceLimitError(error: unknown): boolean {
  return RESOURCE_LIMIT_CODES.includes(fieldsOf(error).code)
}

const QUERY_CANCELED = '57014'
const OUT_OF_MEMORY = '53200'
const RESOURCE_LIMIT_CODES = [QUERY_CANCELED, OUT_OF_MEMORY]

/** The statement took longer than its session allows, or was canceled by the server. */
export function isStatementTimeout(error: unknown): boolean {
  return fieldsOf(error).code === QUERY_CANCELED
}

/** The message of the driver, without the statement that knex puts in front: it may contain values. */
export function messageWithoutStatement(message: string): string {
  return message.split(' - ').at(-1) ?? message
}

/** Wrong password, unknown user or database, missing privilege. A retry cannot succeed. */
export function isDatabaseAccessDenied(error: unknown): boolean {
  return ['28P01', '28000', '3D000', '42501'].includes(fieldsOf(error).code)
}

/** Deadlock or serialization failure: the server has rolled this transaction back. */
export function isDeadlock(error: unknown): boolean {
  return ['40P01', '40001'].includes(fieldsOf(error).code)
}

/** A new row refers to a row that another transaction has deleted since it was found. */
export function isForeignKeyViolation(error: unknown): boolean {
  return fieldsOf(error).code === '23503'
}

/** The row exists already. With a key: only if this unique key was violated. */
export function isUniqueViolation(error: unknown, key?: string): boolean {
  const { code, constraint } = fieldsOf(error)
  return code === '23505' && (key === undefined || key === constraint)
}

/** A lock was not available in time. */
export function isLockTimeout(error: unknown): boolean {
  return fieldsOf(error).code === LOCK_NOT_AVAILABLE
}

const SQL_STATE = /^[0-9][0-9A-Z]{4}$/

interface ErrorFields {
  readonly code: string
  readonly name: string
  readonly message: string
  readonly constraint: string
}

/** Reads the driver's error, also inside one of Objection. The `cause` is not read: it may be the error of another pod's server. */
function fieldsOf(error: unknown): ErrorFields {
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
