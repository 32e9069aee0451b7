import { Ajv, type ErrorObject } from 'ajv'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { HTTP_LIMITS } from '../limits.js'
import { fits } from '../protocol/values.js'
import { RequestFault } from './faults.js'
import { holdsPlainText } from './plain-text.js'

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

export function addValidation(app: FastifyInstance): void {
  app.setValidatorCompiler(({ schema, httpPart }) => (httpPart === 'body' ? bodies : texts).compile(schema))
  app.setSchemaErrorFormatter((errors, part) => new InvalidRequest(part, sentence(part, errors[0])))

  app.addHook('preValidation', (request, _reply, done) => {
    if (anyLonger(request.params, HTTP_LIMITS.pathParameterCharacters) || !holdsPlainText(request.params)) {
      throw new RequestFault(404, 'There is nothing here.')
    }
    const fault = unwritable(request)
    if (fault !== undefined) {
      if (!request.routeOptions.attachValidation) throw fault
      request.validationError = Object.assign(fault, { validation: [], validationContext: fault.part })
    }
    done()
  })
}

function unwritable(request: FastifyRequest): InvalidRequest | undefined {
  if (anyLonger(request.query, HTTP_LIMITS.queryParameterCharacters)) {
    return new InvalidRequest('query', 'A query parameter is too long.')
  }
  const part = (['query', 'body'] as const).find((each) => !holdsPlainText(request[each]))
  return part && new InvalidRequest(part, `The ${part} has characters that no text can have.`)
}

function anyLonger(parameters: unknown, limit: number): boolean {
  return Object.values(parameters ?? {})
    .flat()
    .some((value) => !fits(String(value), limit))
}

function sentence(part: string, error: Partial<ErrorObject> | undefined): string {
  const place = (error?.instancePath ?? '').slice(1).replaceAll('/', '.')
  const subject = place === '' ? `The ${part === 'querystring' ? 'query' : part}` : `"${place}"`
  return `${subject} ${error?.message ?? 'is not what this call takes'}.`
}
