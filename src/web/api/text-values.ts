import type { FastifyInstance, FastifyRequest } from 'fastify'
import { isBooleanText, readBoolean } from '../schemas/booleans.js'
import { hasFormBody } from './authentication.js'

/** The subset of JSON schema that decides how a text is read. */
interface ValueSchema {
  readonly type?: string | readonly string[]
  readonly items?: ValueSchema
  readonly anyOf?: readonly ValueSchema[]
  readonly properties?: Readonly<Record<string, ValueSchema>>
}

type Fields = Record<string, unknown>

/**
 * Reads texts as the values that the schema of a route wants: booleans in queries, forms and JSON; numbers and single items of lists in
 * forms, which hold only texts. The name of a list in a query may end with brackets. Other texts stay, and break the schema.
 */
export function addTextValues(app: FastifyInstance): void {
  app.addHook('preValidation', (request, _reply, done) => {
    const { querystring, body } = request.routeOptions.schema ?? {}
    if (isFields(request.query)) {
      readBracketNames(request.query, fieldsOf(querystring))
      readTexts(request.query, fieldsOf(querystring), readBooleanText)
    }
    if (isFields(request.body)) {
      readTexts(request.body, fieldsOf(body), hasFormBody(request) ? readFormText : readBooleanText)
    }
    done()
  })
}

function readTexts(
  values: Fields,
  schemas: Readonly<Record<string, ValueSchema>>,
  read: (value: unknown, schema: ValueSchema) => unknown,
): void {
  for (const [name, schema] of Object.entries(schemas))
    if (Object.hasOwn(values, name)) values[name] = read(values[name], schema)
}

/** `state[]=open`, `state%5B%5D=open`. */
function readBracketNames(query: Fields, schemas: Readonly<Record<string, ValueSchema>>): void {
  for (const [name, schema] of Object.entries(schemas)) {
    const withBrackets = `${name}[]`
    if (!isList(schema) || !Object.hasOwn(query, withBrackets)) continue
    query[name] = [query[name] ?? [], query[withBrackets]].flat()
  }
}

function readBooleanText(value: unknown, { type }: ValueSchema): unknown {
  return type === 'boolean' && typeof value === 'string' && isBooleanText(value) ? readBoolean(value) : value
}

function readFormText(value: unknown, schema: ValueSchema): unknown {
  const { type, items = {} } = schema
  if (type === 'array') return [value].flat().map((item) => readFormText(item, items))
  const isInteger = [type].flat().includes('integer') && typeof value === 'string' && /^-?[0-9]{1,15}$/.test(value)
  return isInteger ? Number(value) : readBooleanText(value, schema)
}

function isList({ type, anyOf = [] }: ValueSchema): boolean {
  return type === 'array' || anyOf.some(isList)
}

function fieldsOf(schema: unknown): Readonly<Record<string, ValueSchema>> {
  return (schema as ValueSchema | undefined)?.properties ?? {} // JSON Schema
}

function isFields(value: FastifyRequest['query' | 'body']): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
