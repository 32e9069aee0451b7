import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import formats from 'ajv-formats'
import type { FastifyInstance } from 'fastify'
import { describeApi } from '../../../src/web/openapi/document.js'
import { isErrorReason } from '../../../src/web/server/error-reasons.js'

export type Response = Awaited<ReturnType<FastifyInstance['inject']>>

/** A response that the document does not allow; a typed client would fail. */
class UndocumentedResponse extends Error {
  override name = 'Undocumented'
}

/** A response to any request. */
type CheckedResponse = Pick<Response, 'statusCode' | 'headers' | 'body' | 'json'>

export interface ApiDocument {
  /** Throws the differences to the document; an undocumented path of the API may only be a 404. */
  check(method: string, path: string, response: CheckedResponse): void
}

interface DocumentedResponse {
  readonly content?: Readonly<Record<string, { readonly schema: object }>>
}

interface Operation {
  readonly responses: Readonly<Record<string, DocumentedResponse>>
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>
  readonly components: object
}

let documentation: Promise<ApiDocument> | undefined

/** The OpenAPI document, read once for all tests of a file. */
export function readApiDocument(): Promise<ApiDocument> {
  documentation ??= describeApi().then((document) => documentationOf(document as Document)) // tested on its own
  return documentation
}

function documentationOf({ paths, components }: Document): ApiDocument {
  const ajv = formats.default(new Ajv2020({ strict: false, allErrors: true }))
  ajv.addSchema({ components }, 'document')
  const known = new Map<object, ValidateFunction>()
  const calls = Object.entries(paths).map(([path, operations]) => ({ pattern: patternOf(path), path, operations }))

  function validatorOf(schema: object): ValidateFunction {
    const validator =
      known.get(schema) ?? ajv.compile(JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"document#/')))
    known.set(schema, validator)
    return validator
  }

  return {
    check(method, path, response) {
      // A path without parameters comes before one with them, as for the router.
      const call = calls.find((each) => each.path === path) ?? calls.find(({ pattern }) => pattern.test(path))
      const operation = call?.operations[method.toLowerCase()]
      const status = String(response.statusCode)
      const fault = (what: string) =>
        new UndocumentedResponse(`${method} ${path} answered ${status}: ${what}\n${response.body.slice(0, 2_000)}`)

      const isFile = isDocumentedFile(operation?.responses[status], response)
      checkHead(response, fault, isFile)
      if (operation === undefined) {
        if (response.statusCode !== 404) throw fault('the document has no such operation')
        return checkError(response, fault)
      }
      const { responses } = operation
      const documented = responses[status] ?? (response.statusCode >= 400 ? responses['default'] : undefined)
      if (documented === undefined) throw fault('the document has no such status for this operation')
      if (response.statusCode >= 400) checkError(response, fault)
      if (isFile) return

      const schema = documented.content?.['application/json']?.schema
      if (response.body === '') {
        if (schema !== undefined && Reflect.get(schema, 'type') !== 'null') throw fault('the body is missing')
        return
      }
      if (schema === undefined) throw fault('the document has no body')
      const validate = validatorOf(schema)
      const body: unknown = response.json()
      if (!validate(body)) throw fault(ajv.errorsText(validate.errors))
      checkValues(body, fault)
    },
  }
}

/** `/api/v1/users/{person_guid}`: a value goes to the next slash. */
function patternOf(path: string): RegExp {
  const text = path.replace(/[.*+?^$()|[\]\\]/g, '\\$&').replace(/\{[^}]+\}/g, '[^/]+')
  return new RegExp(`^${text}$`)
}

type ErrorFactory = (what: string) => UndocumentedResponse

/** Whether the response is a file of a documented type. */
function isDocumentedFile(response: DocumentedResponse | undefined, { headers }: CheckedResponse): boolean {
  const type = String(headers['content-type'])
  return !type.startsWith('application/json') && response?.content?.[type] !== undefined
}

function checkHead({ body, headers }: CheckedResponse, fault: ErrorFactory, isFile: boolean): void {
  if (headers['cache-control'] !== 'private, no-store') throw fault(`cache-control is ${headers['cache-control']}`)
  const type = headers['content-type']
  if (!isFile && body !== '' && type !== 'application/json; charset=utf-8') throw fault(`the body is ${String(type)}`)
}

function checkError(response: CheckedResponse, fault: ErrorFactory): void {
  const { code, message, reason } = response.json()
  if (code !== response.statusCode || typeof message !== 'string' || message === '')
    throw fault('this is not an error body')
  if (!isErrorReason(String(reason))) throw fault(`its reason is ${String(reason)}`)
  if (code === 401 && !response.headers['www-authenticate']) throw fault('the header www-authenticate is missing')
}

/** Checks times and persons anywhere in a body. */
function checkValues(value: unknown, fault: ErrorFactory): void {
  if (typeof value !== 'object' || value === null) return
  if ('created_at' in value && !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(String(value.created_at))) {
    throw fault(`created_at is ${String(value.created_at)}`)
  }
  if ('network_id' in value) checkPerson(value, fault)
  for (const inside of Object.values(value)) checkValues(inside, fault)
}

function checkPerson(person: { readonly network_id: unknown }, fault: ErrorFactory): void {
  const { diaspora_id, avatar } = Object.fromEntries(Object.entries(person))
  if (person.network_id !== diaspora_id) throw fault('network_id and diaspora_id differ')
  const addresses = typeof avatar === 'string' ? [avatar] : Object.values(Object(avatar))
  if (addresses.length === 0 || !addresses.every((address) => /^https?:\/\/[^/]/.test(String(address)))) {
    throw fault('an avatar is not a URL')
  }
}
