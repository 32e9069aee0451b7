import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Knex } from 'knex'
import type { Precondition } from '../../persistence/database/request-context.js'
import { withRequestContext } from '../../services/services.js'
import { isReadMethod } from '../limits/write-limit.js'
import { buildWeakTag, namesTag } from '../server/entity-tags.js'
import { RequestFault } from '../server/request-faults.js'
import type { FindObject } from './missing-objects-first.js'

/** A single object of an API: its row, and its representation as the GET of its path answers it. */
export interface ConditionalObject {
  readonly table: string
  /** The column whose value is the last parameter of the path. */
  readonly column: string
  /** The columns and values of the row, if the parameter is not the value of one column. */
  readonly keysOf?: (key: string) => Readonly<Record<string, string | number>> | undefined
  /** The part of the representation that an `If-Match` covers, if others change by themselves. */
  readonly versionOf?: (representation: object) => unknown
  /** Reads in the transaction of the change, without effects. */
  readonly read: (request: FastifyRequest, transaction: Knex.Transaction, key: string) => Promise<object>
}

/** Objects by their path. Other calls about them have this path or one below it. */
export type ConditionalObjects = Readonly<Record<string, ConditionalObject>>

/** An object of a path. `read` throws if it is missing. */
export interface RequiredObject {
  readonly read: (request: FastifyRequest, transaction: Knex.Transaction, key: string) => Promise<unknown>
}

export type RequiredObjects = Readonly<Record<string, RequiredObject>>

/** For `addMissingObjectsFirst`: looks up the object of a path in a table of objects. */
export function objectFinderOf(objects: RequiredObjects): (path: string) => FindObject | undefined {
  return (path) => {
    const found = findObject(objects, path)
    return (
      found &&
      ((request) =>
        request.services.db.transaction(async (transaction) =>
          found.object.read(request, transaction, found.keyIn(request)),
        ))
    )
  }
}

/**
 * Gives the objects an ETag of their content, and refuses a change whose `If-Match` names another one with 412. The transaction of the
 * change locks the row and compares first, and refuses last, so that a refusal of the use case has precedence.
 */
export function addConditionalWrites(app: FastifyInstance, objects: ConditionalObjects): void {
  app.addHook('onRoute', (route) => {
    if (isReadMethod(String(route.method)) || findObject(objects, route.routePath) === undefined) return
    route.config = { ...route.config, refusals: { ...route.config?.refusals, changed_meanwhile: 412 } }
  })

  app.addHook('preSerialization', async (request, reply, payload) => {
    const { routeOptions } = request
    const object = objects[pathBelow(app, routeOptions.url)]
    if (object !== undefined && isReadMethod(request.method) && reply.statusCode === 200)
      reply.header('etag', tagOf(object, Object(payload)))
    return payload
  })

  app.addHook('preHandler', async (request) => {
    const requestedTag = request.headers['if-match']
    const found = findObject(objects, pathBelow(app, request.routeOptions.url))
    if (requestedTag === undefined || isReadMethod(request.method) || found === undefined) return
    const { table, column, read, keysOf } = found.object
    const key = found.keyIn(request)
    const precondition: Precondition = {
      isMet: false,
      refusal: changedMeanwhile,
      async lock(transaction) {
        const keys = keysOf === undefined ? { [column]: key } : keysOf(key)
        if (keys !== undefined) await transaction(table).where(keys).select('id').forNoKeyUpdate()
      },
      async isUnchanged(transaction) {
        // The use case reports a missing object.
        const current = await read(request, transaction, key).catch(() => undefined)
        return current === undefined || namesVersion(found.object, requestedTag, current)
      },
    }
    request.services = withRequestContext(request.services, { precondition })
  })
}

/** The object that a route is about: its own path, or the beginning of it. */
function findObject<Found extends RequiredObject>(objects: Readonly<Record<string, Found>>, url: string | undefined) {
  const entry = Object.entries(objects).find(([path]) => url === path || url?.startsWith(`${path}/`))
  if (entry === undefined) return undefined
  const [path, object] = entry
  const parameter = path.slice(path.lastIndexOf(':') + 1)
  return { object, keyIn: ({ params }: FastifyRequest) => String(Reflect.get(Object(params), parameter)) }
}

type Versioned = Pick<ConditionalObject, 'versionOf'>

/** The tag of a representation; after a dot that of its version, if this is a part of it. */
function tagOf({ versionOf }: Versioned, representation: object): string {
  const tag = buildWeakTag(JSON.stringify(representation))
  return versionOf === undefined ? tag : tag.replace(/"$/, `.${versionTagOf(versionOf(representation))}"`)
}

function namesVersion({ versionOf }: Versioned, header: string, representation: object): boolean {
  if (versionOf === undefined) return namesTag(header, tagOf({}, representation))
  const versions = header.replaceAll(/"[^".]*\./g, '"')
  return namesTag(versions, `"${versionTagOf(versionOf(representation))}"`)
}

function versionTagOf(version: unknown): string {
  return buildWeakTag(JSON.stringify(version)).slice(3, -1)
}

function pathBelow({ prefix }: FastifyInstance, url = ''): string {
  return url.slice(prefix.length)
}

function changedMeanwhile(): RequestFault {
  return new RequestFault(412, 'This was changed in the meantime. Read it again.', { reason: 'changed_meanwhile' })
}
