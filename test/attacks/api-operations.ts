import type { FastifyInstance, InjectOptions } from 'fastify'
import { describeApi } from '../../src/web/openapi/document.js'

/** A call of the client API as its document has it. */
export interface ApiOperation {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** With its parameters in braces. */
  readonly path: string
  readonly pathParameters: readonly string[]
  readonly queryParameters: readonly string[]
  /** Names and types of the properties of a JSON body. */
  readonly fields: Readonly<Record<string, unknown>>
}

interface Described {
  readonly parameters?: readonly { readonly in: string; readonly name: string }[]
  readonly requestBody?: {
    readonly content: Readonly<
      Record<
        string,
        { readonly schema: { readonly properties?: Readonly<Record<string, { readonly type?: unknown }>> } }
      >
    >
  }
}

/** All calls that there are; new ones are tried as soon as they are documented. What never ends is left out. */
export async function readOperations(): Promise<readonly ApiOperation[]> {
  const { paths } = (await describeApi()) as { readonly paths: Readonly<Record<string, Record<string, Described>>> }
  return Object.entries(paths)
    .filter(([path]) => !path.endsWith('/streaming'))
    .flatMap(([path, calls]) =>
      Object.entries(calls).map(([method, { parameters = [], requestBody }]) => ({
        method: method.toUpperCase() as ApiOperation['method'], // the document writes methods in lower case
        path,
        pathParameters: parameters.filter((one) => one.in === 'path').map(({ name }) => name),
        queryParameters: parameters.filter((one) => one.in === 'query').map(({ name }) => name),
        fields: Object.fromEntries(
          Object.entries(requestBody?.content['application/json']?.schema.properties ?? {}).map(([name, { type }]) => [
            name,
            type,
          ]),
        ),
      })),
    )
}

interface Attempt {
  readonly token?: string
  /** Path parameters by name, inserted without encoding. */
  readonly parameters?: Readonly<Record<string, string | number>>
  readonly query?: string
  readonly body?: unknown
}

export function tryCall(app: FastifyInstance, { method, path }: ApiOperation, attempt: Attempt) {
  const { token, parameters = {}, query = '', body } = attempt
  const place = path.replace(/\{(\w+)\}/g, (_all, name: string) => String(parameters[name] ?? 'x'))
  return app.inject({
    method,
    url: `${place}${query === '' ? '' : `?${query}`}`,
    ...(token !== undefined && { headers: { authorization: `Bearer ${token}` } }),
    ...(method !== 'GET' && method !== 'DELETE' && { payload: body ?? {} }),
  } as InjectOptions) // the union of its bodies does not see through the spread
}

/** Patterns that no error response may contain. */
export const TELLING =
  /node_modules|\bat .*:\d+:\d+|\.(ts|js):\d|select .* from|insert into|violates|syntax error|knex|objection|fastify|postgres|relation "|ECONN|\/work\/|\/home\//i
