import { Ajv, type ErrorObject } from 'ajv'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { HTTP_LIMITS } from '../../limits.js'
import { fits } from '../../protocol/values.js'
import { holdsPlainText } from '../schemas/storable-text.js'
import { RequestFault } from './request-faults.js'

/** What a schema found wrong, and where: the part of the request decides which status it becomes. */
export class InvalidRequest extends Error {
  override name = 'InvalidRequest'
  readonly part: string

  constructor(part: string, message: string) {
    super(message)
    this.part = part
  }
}

// A body says what it means: "5" is not a number in it, and nothing is turned into something else.
const bodies = new Ajv({ useDefaults: true, allErrors: false, strict: false, strictNumbers: true })
// Paths and queries know only texts. Never lists: coerced, `?page[]=2` would be as good as `?page=2`.
const texts = new Ajv({ coerceTypes: true, useDefaults: true, allErrors: false, strict: false })

/** Where nothing is said about a part of a request, nothing of it is read, or a form that says by itself what it takes. */
type Undescribed = 'unread' | 'read'

export function addValidation(app: FastifyInstance, undescribed: Undescribed = 'unread'): void {
  app.setValidatorCompiler(({ schema, httpPart }) => (httpPart === 'body' ? bodies : texts).compile(schema))
  app.setSchemaErrorFormatter((errors, part) => new InvalidRequest(part, sentence(part, errors[0])))

  app.addHook('preValidation', (request, _reply, done) => {
    if (anyLonger(request.params, HTTP_LIMITS.pathParameterCharacters) || !holdsPlainText(request.params)) {
      throw new RequestFault(404, 'There is nothing here.')
    }
    const fault = unreadable(request, undescribed)
    if (fault !== undefined) {
      if (!request.routeOptions.attachValidation) throw fault
      request.validationError = Object.assign(fault, { validation: [], validationContext: fault.part })
    }
    done()
  })
}

/** Of what the route reads: whatever else comes along is passed over. */
function unreadable(request: FastifyRequest, undescribed: Undescribed): InvalidRequest | undefined {
  const { querystring, body } = request.routeOptions.schema ?? {}
  const query = readOf(request.query, querystring, undescribed)
  if (anyLonger(query, HTTP_LIMITS.queryParameterCharacters)) {
    return new InvalidRequest('query', 'A query parameter is too long.')
  }
  if (!holdsPlainText(query)) return unwritable('query')
  const number = Object.keys(query).find(
    (name) => isNumber(querystring, name) && !/^[+-]?\d+$/.test(String(query[name])),
  )
  if (number !== undefined) return new InvalidRequest('query', `"${number}" must be a whole number.`)
  return holdsPlainText(readOf(request.body, body, undescribed)) ? undefined : unwritable('body')
}

function unwritable(part: string): InvalidRequest {
  return new InvalidRequest(part, `The ${part} has characters that no text can have.`)
}

function readOf(part: unknown, schema: unknown, undescribed: Undescribed): Readonly<Record<string, unknown>> {
  if (schema === undefined && undescribed === 'unread') return {}
  const properties = propertiesOf(schema)
  const entries = Object.entries(part ?? {})
  return Object.fromEntries(properties ? entries.filter(([name]) => Object.hasOwn(properties, name)) : entries)
}

/** Also what JavaScript would take for one, as 0x10 or Infinity, is none. */
function isNumber(schema: unknown, name: string): boolean {
  return propertiesOf(schema)?.[name]?.type === 'integer'
}

function propertiesOf(schema: unknown): Readonly<Record<string, { readonly type?: string }>> | undefined {
  return (schema as { readonly properties?: Record<string, { readonly type?: string }> } | undefined)?.properties
}

function anyLonger(parameters: unknown, limit: number): boolean {
  return Object.values(parameters ?? {})
    .flat()
    .some((value) => !fits(String(value), limit))
}

function sentence(part: string, error: Partial<ErrorObject> | undefined): string {
  const place = (error?.instancePath ?? '').slice(1).replaceAll('/', '..')
  const subject = place === '' ? `The ${part === 'querystring' ? 'query' : part}` : `"${place}"`
  return `${subject} ${error?.message ?? 'is not what this call takes'}.`
}
