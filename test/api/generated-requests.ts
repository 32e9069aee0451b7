import fc from 'fast-check'
import { anyText } from '../protocol/arbitrary-entities.js'
import type { ApiPod } from '../support/pods/api-pod.js'
import {
  anything,
  goodTexts,
  hostileNames,
  longTexts,
  oddHeaders,
  oddSegments,
  pictures,
  segment,
  seldom,
  unreadable,
} from './hostile-values.js'
import { arbitraryOfParameter, Known, knownInPath } from './known-values.js'

export type ApiCall = Parameters<ApiPod['call']>[0]

/** The subset of JSON schema that the document uses for requests. */
interface Schema {
  readonly type?: string | readonly string[]
  readonly anyOf?: readonly Schema[]
  readonly enum?: readonly unknown[]
  readonly pattern?: string
  readonly minimum?: number
  readonly maximum?: number
  readonly items?: Schema
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
}

interface Parameter {
  readonly in: string
  readonly name: string
  readonly schema: Schema
}

export interface Operation {
  readonly operationId: string
  readonly parameters?: readonly Parameter[]
  readonly responses?: Readonly<Record<string, { readonly content?: Readonly<Record<string, unknown>> }>>
  readonly requestBody?: {
    readonly content: Readonly<Record<string, { readonly schema: Schema; readonly example?: unknown }>>
  }
}

/** What `describeApi` makes. */
export interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
}

/** A request whose references to existing entities are not resolved yet. */
export interface GeneratedRequest {
  readonly operationId: string
  readonly place: number
  readonly method: NonNullable<ApiCall['method']>
  /** Text stands there as it is; a value is written as the path or the query needs it. */
  readonly path: readonly Part[]
  readonly query: readonly Pair[]
  readonly body: GeneratedBody
  readonly headers: Readonly<Record<string, string>>
  readonly token: Known | 'none' | 'unknown' | 'in the query' | 'twice'
}

type Pair = readonly [name: string, value: unknown]

type Part = { readonly text: string } | { readonly value: unknown }

type GeneratedBody =
  | { readonly form: 'none' }
  | { readonly form: 'text'; readonly text: string }
  | { readonly form: 'JSON' | 'fields'; readonly value: unknown }
  /** With a file. */
  | { readonly form: 'upload'; readonly file: string; readonly bytes: Buffer; readonly value: unknown }

/** The calls of the client API; the admin API has tests of its own. */
function clientCallsOf({ paths }: Pick<Document, 'paths'>) {
  return Object.entries(paths).filter(([path]) => path.startsWith('/api/v1/'))
}

/** A call of the API with its requests: most of them nearly right, each part now and then of a wrong type or hostile. */
export interface Call {
  readonly method: string
  readonly operation: Operation
  readonly arbitrary: fc.Arbitrary<GeneratedRequest>
}

export function requestsOf(document: Document): readonly Call[] {
  return clientCallsOf(document).flatMap(([path, operations]) =>
    Object.entries(operations)
      .filter(([, operation]) => ends(operation))
      .map(([method, operation]) => ({ method, operation, arbitrary: requestOf(path, method, operation) })),
  )
}

/** Whether its answer comes to an end. */
function ends({ responses }: Operation): boolean {
  return responses?.['200']?.content?.['text/event-stream'] === undefined
}

function requestOf(path: string, method: string, operation: Operation): fc.Arbitrary<GeneratedRequest> {
  const { operationId, parameters = [], requestBody } = operation
  const { schema, example } = requestBody?.content['application/json'] ?? {}
  const upload = requestBody?.content['multipart/form-data']?.schema
  return fc.record({
    operationId: fc.constant(operationId),
    place: fc.nat(99),
    method: seldom(fc.constant(method.toUpperCase()), fc.constantFrom('GET', 'POST', 'PUT', 'PATCH', 'DELETE')).map(
      (name) => name as GeneratedRequest['method'], // one of these
    ),
    path: pathOf(path.replace('/api/v1', '')),
    query: queryOf(parameters.filter((parameter) => parameter.in === 'query')),
    body:
      upload !== undefined
        ? uploadOf(upload)
        : schema !== undefined
          ? bodyOf(schema, example)
          : seldom(noBody, anyBody),
    headers: seldom(fc.constant({}), oddHeaders),
    token: seldom<GeneratedRequest['token']>(
      fc.constant(new Known('tokens')),
      fc.constantFrom('none', 'unknown', 'in the query', 'twice'),
    ),
  })
}

function pathOf(path: string): fc.Arbitrary<readonly Part[]> {
  const parts = path.split(/(\{\w+\})/).map((text): fc.Arbitrary<Part> => {
    const [, name] = /^\{(\w+)\}$/.exec(text) ?? []
    if (name === undefined) return fc.constant({ text })
    const known = knownInPath(path, name) ?? segment
    return fc.oneof(
      { weight: 12, arbitrary: known.map((value) => ({ value })) },
      { weight: 1, arbitrary: segment.map((value) => ({ value })) },
      { weight: 1, arbitrary: fc.constantFrom(...oddSegments).map((text) => ({ text })) },
    )
  })
  const end = seldom(fc.constant(''), fc.constantFrom('/', '//', '.json', '/nothing', '/%20', ';x=1', '.xml', '%00'))
  return fc.tuple(
    ...parts,
    end.map((text) => ({ text })),
  )
}

function queryOf(parameters: readonly Parameter[]): fc.Arbitrary<GeneratedRequest['query']> {
  const given = parameters.map(({ name, schema }) =>
    fc.option(
      fc.tuple(
        seldom(fc.constant(name), fc.constantFrom(`${name}[]`, `${name}[x]`, name.toUpperCase())),
        generated(name, schema),
      ),
      { nil: undefined, freq: 2 },
    ),
  )
  const more = fc.array(fc.tuple(fc.oneof(anyText(0, 20), fc.constantFrom(...hostileNames)), anything), {
    maxLength: 2,
  })
  return fc
    .tuple(
      fc.tuple(...given),
      seldom<readonly Pair[]>(fc.constant([]), more),
      seldom(fc.constant(false), fc.constant(true)),
    )
    .map(([one, two, twice]) => {
      const pairs = [...one.filter((pair) => pair !== undefined), ...two]
      return twice && pairs.length === 1 ? [...pairs, ...pairs] : pairs
    })
}

const noBody: fc.Arbitrary<GeneratedBody> = fc.constant({ form: 'none' })

/** Includes the documented example: with many optional fields, a generated value is rarely valid as a whole. */
function bodyOf(schema: Schema, example?: unknown): fc.Arbitrary<GeneratedBody> {
  const value = seldom(generated('', schema), anything)
  return fc.oneof(
    { weight: 8, arbitrary: value.map((inside) => ({ form: 'JSON' as const, value: inside })) },
    { weight: example === undefined ? 0 : 2, arbitrary: fc.constant({ form: 'JSON' as const, value: example }) },
    { weight: 2, arbitrary: value.map((inside) => ({ form: 'fields' as const, value: inside })) },
    { weight: 1, arbitrary: fc.constantFrom(...unreadable).map((text) => ({ form: 'text' as const, text })) },
    { weight: 1, arbitrary: anyText().map((text) => ({ form: 'text' as const, text })) },
    { weight: 1, arbitrary: noBody },
  )
}

const anyBody = bodyOf({ type: 'object' })

/** A form with a file and other fields, or a malformed one. */
function uploadOf({ properties = {} }: Schema): fc.Arbitrary<GeneratedBody> {
  const { image: _file, ...fields } = properties
  const upload = fc.record({
    form: fc.constant('upload' as const),
    file: seldom(fc.constant('image'), fc.constantFrom('Image', 'file', 'image[]', '')),
    bytes: pictures,
    value: seldom(generated('', { type: 'object', properties: fields }), anything),
  })
  return fc.oneof({ weight: 8, arbitrary: upload }, { weight: 1, arbitrary: anyBody })
}

/** A value that the schema allows; sometimes the value or a part of it is replaced. */
function generated(name: string, schema: Schema): fc.Arbitrary<unknown> {
  const known = arbitraryOfParameter(name)
  const valid = validOf(name, schema)
  const usual = known === undefined ? valid : fc.oneof({ weight: 4, arbitrary: known }, { weight: 1, arbitrary: valid })
  return seldom(usual, anything)
}

function validOf(name: string, schema: Schema): fc.Arbitrary<unknown> {
  const { type, anyOf, enum: choice, pattern, minimum = -(2 ** 53), maximum = 2 ** 53, items, properties = {} } = schema
  if (anyOf !== undefined && type === undefined) return fc.oneof(...anyOf.map((one) => validOf(name, one)))
  if (choice !== undefined) return fc.constantFrom(...choice)
  if (typeof type === 'object') return fc.oneof(...type.map((one) => validOf(name, { ...schema, type: one })))
  switch (type) {
    case 'boolean':
      return fc.boolean()
    case 'integer':
      return fc.oneof(fc.integer({ min: Math.max(minimum, -100), max: 200 }), fc.constantFrom(minimum, maximum))
    case 'string':
      return pattern === undefined ? fc.oneof(goodTexts, anyText(0, 40), longTexts) : fc.stringMatching(RegExp(pattern))
    case 'array':
      return fc.array(generated(name, items ?? {}), { maxLength: 8 })
    case 'object':
      return objectOf(properties, schema.required ?? [])
    default:
      return fc.constant(null)
  }
}

function objectOf(properties: Readonly<Record<string, Schema>>, required: readonly string[]): fc.Arbitrary<unknown> {
  const fields = Object.entries(properties).map(([name, schema]) => {
    const field = generated(name, schema).map((value) => [name, value] as const)
    return required.includes(name)
      ? seldom<readonly [string, unknown] | undefined>(field, fc.constant(undefined))
      : fc.option(field, { nil: undefined })
  })
  const more = seldom<readonly Pair[]>(
    fc.constant([]),
    fc.array(fc.tuple(fc.constantFrom(...hostileNames), anything), { maxLength: 3 }),
  )
  return fc
    .tuple(fc.tuple(...fields), more)
    .map(([own, other]) => Object.fromEntries([...own.filter((field) => field !== undefined), ...other]))
}
