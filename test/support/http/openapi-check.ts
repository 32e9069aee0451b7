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
type Answer = Pick<Response, 'statusCode' | 'headers' | 'body' | 'json'>

export interface ApiDocument {
  /** Throws the differences to the document; an undocumented path of the API may only be a 404. */
  check(method: string, path: string, answer: Answer): void
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
    check(method, path, answer) {
      // A path without parameters comes before one with them, as for the router.
      const call = calls.find((each) => each.path === path) ?? calls.find(({ pattern }) => pattern.test(path))
      const operation = call?.operations[method.toLowerCase()]
      const status = String(answer.statusCode)
      const wrong = (what: string) =>
        new UndocumentedResponse(`${method} ${path} answered ${status}: ${what}\n${answer.body.slice(0, 2_000)}`)

      const isFile = isDocumentedFile(operation?.responses[status], answer)
      checkHead(answer, wrong, isFile)
      if (operation === undefined) {
        if (answer.statusCode !== 404) throw wrong('there is no such call in the document')
        return checkError(answer, wrong)
      }
      const { responses } = operation
      const response = responses[status] ?? (answer.statusCode >= 400 ? responses['default'] : undefined)
      if (response === undefined) throw wrong('the document knows no such status of this call')
      if (answer.statusCode >= 400) checkError(answer, wrong)
      if (isFile) return

      const schema = response.content?.['application/json']?.schema
      if (answer.body === '') {
        if (schema !== undefined && Reflect.get(schema, 'type') !== 'null') throw wrong('the body is missing')
        return
      }
      if (schema === undefined) throw wrong('the document knows no body')
      const validate = validatorOf(schema)
      const body: unknown = answer.json()
      if (!validate(body)) throw wrong(ajv.errorsText(validate.errors))
      checkValues(body, wrong)
    },
  }
}

/** `/api/v1/users/{person_guid}`: a value goes to the next slash. */
function patternOf(path: string): RegExp {
  const text = path.replace(/[.*+?^$()|[\]\\]/g, '\\$&').replace(/\{[^}]+\}/g, '[^/]+')
  return new RegExp(`^${text}$`)
}

type Wrong = (what: string) => UndocumentedResponse

/** Whether the answer is a file of a type that the document names. */
function isDocumentedFile(response: DocumentedResponse | undefined, { headers }: Answer): boolean {
  const type = String(headers['content-type'])
  return !type.startsWith('application/json') && response?.content?.[type] !== undefined
}

function checkHead({ body, headers }: Answer, wrong: Wrong, isFile: boolean): void {
  if (headers['cache-control'] !== 'private, no-store') throw wrong(`cache-control is ${headers['cache-control']}`)
  const type = headers['content-type']
  if (!isFile && body !== '' && type !== 'application/json; charset=utf-8') throw wrong(`the body is ${String(type)}`)
}

function checkError(answer: Answer, wrong: Wrong): void {
  const { code, message, reason } = answer.json()
  if (code !== answer.statusCode || typeof message !== 'string' || message === '')
    throw wrong('this is not an error body')
  if (!isErrorReason(String(reason))) throw wrong(`its reason is ${String(reason)}`)
  if (code === 401 && !answer.headers['www-authenticate']) throw wrong('the header www-authenticate is missing')
}

/** Checks times and persons anywhere in a body. */
function checkValues(value: unknown, wrong: Wrong): void {
  if (typeof value !== 'object' || value === null) return
  if ('created_at' in value && !/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(String(value.created_at))) {
    throw wrong(`created_at is ${String(value.created_at)}`)
  }
  if ('network_id' in value) checkPerson(value, wrong)
  for (const inside of Object.values(value)) checkValues(inside, wrong)
}

function checkPerson(person: { readonly network_id: unknown }, wrong: Wrong): void {
  const { diaspora_id, avatar } = Object.fromEntries(Object.entries(person))
  if (person.network_id !== diaspora_id) throw wrong('network_id and diaspora_id differ')
  const addresses = typeof avatar === 'string' ? [avatar] : Object.values(Object(avatar))
  if (addresses.length === 0 || !addresses.every((address) => /^https?:\/\/[^/]/.test(String(address)))) {
    throw wrong('an avatar is not an address')
  }
}
