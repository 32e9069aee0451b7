import type { SwaggerTransformObject } from '@fastify/swagger'
import { OPERATION_EXAMPLES } from './examples.js'

/** The headers of responses, by name. */
export const RESPONSE_HEADERS = {
  'X-Request-Id': {
    description: 'The id of the request. Report it to the operator of the pod when something is wrong.',
    schema: { type: 'string' },
  },
  Link: {
    description:
      'The next page (`rel="next"`, only if there are more items) and the previous one (`rel="previous"`), as absolute URLs.',
    schema: { type: 'string' },
    example: '<https://pod.example/api/v1/photos?before=2025-03-01T08%3A15%3A30.250Z&before_id=7>; rel="next"',
  },
  ETag: {
    description:
      'The version of this response. `If-None-Match` with it is answered with 304 while nothing has changed.',
    schema: { type: 'string' },
    example: 'W/"XiVgNkmJkjR0YkNGrhSylf"',
  },
  'Unread-Notifications': {
    description: 'Your unread notifications; at most 1 000 are counted.',
    schema: { type: 'integer' },
  },
  'Unread-Conversations': {
    description: 'Your conversations with unread messages, likewise; only with the scope `conversations`.',
    schema: { type: 'integer' },
  },
  'Unread-Messages': { description: 'The unread messages in these conversations.', schema: { type: 'integer' } },
  'Retry-After': { description: 'Seconds to wait before the next try.', schema: { type: 'integer', minimum: 1 } },
  'WWW-Authenticate': {
    description: 'How to authenticate, and what is wrong with the token (RFC 6750).',
    schema: { type: 'string' },
  },
  'Idempotency-Replayed': {
    description: '`true` if this is the stored response of an earlier request with the same `Idempotency-Key`.',
    schema: { type: 'string' },
  },
} as const

type HeaderName = keyof typeof RESPONSE_HEADERS

/** The parts of the document that are changed here. */
interface Operation {
  operationId?: string
  tags?: string[]
  description?: string
  parameters?: {
    in: string
    name: string
    example?: unknown
    required?: boolean
    description?: string
    schema?: object
  }[]
  requestBody?: { content: Record<string, { example?: unknown }> }
  responses?: Record<string, { headers?: Record<string, object> }>
}

/** Adds headers of requests and responses, examples, and operation ids for the PUT aliases of PATCH. */
export const finishDocument: SwaggerTransformObject = (document) => {
  if (!('openapiObject' in document)) return document.swaggerObject
  const paths = (document.openapiObject.paths ?? {}) as Record<string, Record<string, Operation>>
  for (const path of Object.values(paths)) {
    nameAlias(path)
    for (const [method, operation] of Object.entries(path)) {
      addHeaders(method, operation)
      addPrecondition(operation)
      addExample(operation)
    }
  }
  return document.openapiObject
}

/** PATCH and PUT share a route, but every operation needs its own id. */
function nameAlias(path: Record<string, Operation>): void {
  const { put, patch } = path
  if (put?.operationId === undefined || put.operationId !== patch?.operationId) return
  // Both are the same object.
  path['put'] = { ...structuredClone(put), operationId: `${put.operationId}WithPut`, description: 'The same as PATCH.' }
}

function addHeaders(method: string, operation: Operation): void {
  for (const [status, response] of Object.entries(operation.responses ?? {})) {
    const names = headersOf(method, operation, status)
    response.headers = Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }]))
  }
}

/** Every call that may be refused with 412 compares this header. */
function addPrecondition(operation: Operation): void {
  if (operation.responses?.['412'] === undefined) return
  const isKnown = operation.parameters?.some(({ name }) => name === PRECONDITION.name)
  if (!isKnown) operation.parameters = [...(operation.parameters ?? []), { ...PRECONDITION }]
}

const PRECONDITION = {
  in: 'header',
  name: 'If-Match',
  required: false,
  description: 'The `ETag` of the object, as its GET has answered it: 412 if the object was changed in the meantime.',
  schema: { type: 'string' },
} as const

function headersOf(method: string, { parameters = [], tags = [] }: Operation, status: string): HeaderName[] {
  const isSuccess = status.startsWith('2')
  const isPaged = parameters.some(({ name }) => name === 'per_page')
  const names: HeaderName[] = ['X-Request-Id']
  if (isSuccess && isPaged) names.push('Link')
  // Event streams and writes have no version.
  if (method === 'get' && !tags.includes('Live') && (isSuccess || status === '304')) names.push('ETag')
  if (isSuccess && tags.includes('Notifications')) {
    names.push('Unread-Notifications', 'Unread-Conversations', 'Unread-Messages')
  }
  if (isSuccess && method === 'post') names.push('Idempotency-Replayed')
  if (status === '401' || status === '403') names.push('WWW-Authenticate')
  if (status === '429' || status === '503' || (status === '409' && method === 'post')) names.push('Retry-After')
  return names
}

function addExample({ operationId = '', parameters = [], requestBody }: Operation): void {
  const { path = {}, query = {}, body } = OPERATION_EXAMPLES[operationId] ?? {}
  const values: Readonly<Record<string, unknown>> = { ...path, ...query }
  for (const parameter of parameters) {
    if (Object.hasOwn(values, parameter.name)) parameter.example = values[parameter.name]
  }
  if (body !== undefined && requestBody !== undefined) {
    for (const content of Object.values(requestBody.content)) content.example = body
  }
}
