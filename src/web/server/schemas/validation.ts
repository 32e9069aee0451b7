import { Ajv, type AnySchema, type ErrorObject, type ValidateFunction } from 'ajv'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { isWithinLength } from '../../../protocol/values.js'
import { hasOnlyStorableText } from '../../schemas/storable-text.js'
import type { ErrorReason } from '../error-reasons.js'
import { HTTP_LIMITS } from '../limits.js'
import { RequestFault } from '../request-faults.js'

type InvalidReason = Extract<ErrorReason, 'field_missing' | 'field_invalid'>

/** A part of a request breaks its schema. The part decides the status. */
export class InvalidRequest extends Error {
  override name = 'InvalidRequest'
  readonly part: string
  /** Names of the wrong fields; the message is about the first. */
  readonly fields: readonly string[]
  readonly reason: InvalidReason

  constructor(part: string, message: string, fields: readonly string[], reason: InvalidReason = 'field_invalid') {
    super(message)
    this.part = part
    this.fields = fields
    this.reason = reason
  }
}

// Without coercion: in a body, "5" is not a number.
const bodies = new Ajv({ useDefaults: true, allErrors: false, strict: false, strictNumbers: true })
// With coercion, because paths and queries hold only texts. Not of lists: `?page[]=2` must not equal `?page=2`.
const texts = new Ajv({ coerceTypes: true, useDefaults: true, allErrors: false, strict: false })

interface Part {
  readonly schema: AnySchema
  readonly httpPart?: string
}

function validatorOf({ schema, httpPart }: Part): FieldsValidator {
  return validatorOfFields(httpPart === 'body' ? bodies : texts, schema)
}

/** For the whole server: without it, Fastify creates an Ajv for each instance with routes. */
export function useValidators(app: FastifyInstance): void {
  app.setValidatorCompiler(validatorOf)
}

/** Whether the handler reads parts of a request for which its route has no schema, as the handlers of HTML forms do. */
type WithoutSchema = 'unread' | 'read'

export function addValidation(app: FastifyInstance, withoutSchema: WithoutSchema = 'unread'): void {
  useValidators(app)
  app.setSchemaErrorFormatter((errors: readonly Partial<ErrorObject>[], part) => {
    const reason = errors[0]?.keyword === 'required' ? 'field_missing' : 'field_invalid'
    return new InvalidRequest(part, sentence(part, errors[0]), listInvalidFields(errors), reason)
  })

  app.addHook('preValidation', (request, _reply, done) => {
    if (
      hasParameterLongerThan(request.params, HTTP_LIMITS.pathParameterCharacters) ||
      !hasOnlyStorableText(request.params)
    ) {
      throw new RequestFault(404, 'There is nothing here.')
    }
    const fault = findFault(request, withoutSchema)
    if (fault !== undefined) {
      if (!request.routeOptions.attachValidation) throw fault
      request.validationError = Object.assign(fault, { validation: [], validationContext: fault.part })
    }
    done()
  })
}

/**
 * Reports the first error of a schema, and one for each other wrong field. Not `allErrors`, with which a long list in a body would
 * cause as many errors. Compiled at the first request: most processes serve few of the routes.
 */
function validatorOfFields(ajv: Ajv, schema: AnySchema): FieldsValidator {
  let compiledSchema: ValidateFunction | undefined
  let validatorsOfFields: readonly ValidateFunction[] | undefined // compiled late: most schemas never meet a wrong field

  function check(value: unknown): boolean {
    compiledSchema ??= compileOnce(ajv, schema)
    if (compiledSchema(value)) return true
    validatorsOfFields ??= schemasOfFields(schema).map((each) => ajv.compile(each))
    const others = validatorsOfFields.flatMap((each) => (each(value) ? [] : (each.errors?.slice(0, 1) ?? [])))
    check.errors = [...(compiledSchema.errors?.slice(0, 1) ?? []), ...others]
    return false
  }
  check.errors = [] as ErrorObject[]
  return check
}

interface FieldsValidator {
  (value: unknown): boolean
  errors: ErrorObject[]
}

const compiledBy = new WeakMap<Ajv, Map<string, ValidateFunction>>()

/** Equal schemas, as those of a page of a list, are compiled once. */
function compileOnce(ajv: Ajv, schema: AnySchema): ValidateFunction {
  const compiledSchemas = compiledBy.get(ajv) ?? new Map<string, ValidateFunction>()
  compiledBy.set(ajv, compiledSchemas)
  const key = JSON.stringify(schema)
  const validate = compiledSchemas.get(key) ?? ajv.compile(schema)
  compiledSchemas.set(key, validate)
  return validate
}

/** One schema for each field of an object schema. */
function schemasOfFields(schema: AnySchema): readonly AnySchema[] {
  const { properties = {}, required = [] } = (typeof schema === 'object' ? schema : {}) as ObjectSchema // JSON Schema
  return Object.entries(properties).map(([name, field]) => ({
    type: 'object',
    properties: { [name]: field },
    required: required.filter((each) => each === name),
  }))
}

interface ObjectSchema {
  readonly properties?: Readonly<Record<string, AnySchema>>
  readonly required?: readonly string[]
}

/** The names of the wrong fields without duplicates, as `poll.question`. An error about the whole part has no field. */
export function listInvalidFields(errors: readonly Partial<ErrorObject>[]): readonly string[] {
  const names = errors.map(({ instancePath = '', params }) =>
    [...instancePath.split('/').slice(1), params?.['missingProperty'] ?? ''].filter((name) => name !== '').join('.'),
  )
  return [...new Set(names)].filter((name) => name !== '')
}

/** The first fault of the query or body. Fields that the route does not read are ignored. */
function findFault(request: FastifyRequest, withoutSchema: WithoutSchema): InvalidRequest | undefined {
  const { querystring, body } = request.routeOptions.schema ?? {}
  const query = readOf(request.query, querystring, withoutSchema)
  const long = Object.keys(query).filter((name) => isLonger(query[name], HTTP_LIMITS.queryParameterCharacters))
  if (long.length > 0) return new InvalidRequest('query', 'A query parameter is too long.', long)
  if (!hasOnlyStorableText(query)) return invalidCharacters('query', query)
  const number = Object.keys(query).find(
    // Coercion would accept 0x10 and Infinity.
    (name) => isInteger(querystring, name) && !/^[+-]?\d+$/.test(String(query[name])),
  )
  if (number !== undefined) return new InvalidRequest('query', `"${number}" must be a whole number.`, [number])
  const fields = readOf(request.body, body, withoutSchema)
  return hasOnlyStorableText(fields) ? undefined : invalidCharacters('body', fields)
}

function invalidCharacters(part: string, fields: Readonly<Record<string, unknown>>): InvalidRequest {
  const invalidNames = Object.keys(fields).filter((name) => !hasOnlyStorableText(fields[name]))
  return new InvalidRequest(
    part,
    `The ${part} has invalid characters (control characters or unpaired surrogates).`,
    invalidNames,
  )
}

function readOf(part: unknown, schema: unknown, withoutSchema: WithoutSchema): Readonly<Record<string, unknown>> {
  if (schema === undefined && withoutSchema === 'unread') return {}
  const properties = propertiesOf(schema)
  const entries = Object.entries(part ?? {})
  return Object.fromEntries(properties ? entries.filter(([name]) => Object.hasOwn(properties, name)) : entries)
}

function isInteger(schema: unknown, name: string): boolean {
  return propertiesOf(schema)?.[name]?.type === 'integer'
}

function propertiesOf(schema: unknown): Readonly<Record<string, { readonly type?: string }>> | undefined {
  return (schema as { readonly properties?: Record<string, { readonly type?: string }> } | undefined)?.properties
}

function hasParameterLongerThan(parameters: unknown, limit: number): boolean {
  return Object.values(parameters ?? {}).some((value) => isLonger(value, limit))
}

/** A parameter that occurs several times is a list. */
function isLonger(parameter: unknown, limit: number): boolean {
  return [parameter].flat().some((value) => !isWithinLength(String(value), limit))
}

function sentence(part: string, error: Partial<ErrorObject> | undefined): string {
  const place = (error?.instancePath ?? '').slice(1).replaceAll('/', '.')
  const subject = place === '' ? `The ${part === 'querystring' ? 'query' : part}` : `"${place}"`
  return `${subject} ${error?.message ?? 'is not what this call takes'}.`
}
