import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, Type } from 'typebox'
import { changeAspect, createAspect, getAspect, listAspects } from '../../../domain/contacts/aspects.js'
import { deleteAspect } from '../../../domain/contacts/contacts.js'
import { objectFinder } from '../../api/missing-objects-first.js'
import { indexPaging, linkIndexPages, readIndexPage } from '../../api/paging.js'
import { readList } from '../../api/read-list.js'
import { presentAspect } from '../../presenters/aspects.js'
import { Aspect } from '../../schemas/aspects.js'
import { numberField, readRowId } from '../../schemas/numbers.js'
import { refTo } from '../../schemas/references.js'

const tags = ['Aspects']
const params = Type.Object({ id: Type.String() })
const name = Type.String({ description: '1 to 20 characters, unique among your aspects (case-insensitive).' })
const missing = { aspect_not_found: 404 }
const invalidName = { name_invalid: 422, name_taken: 422, invalid: 422 }

/** The viewer's aspects: named groups of contacts. */
export const aspectRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const findAspect = objectFinder<Static<typeof params>>((request) =>
    getAspect(request.services, request.viewer, readRowId(request.params.id)),
  )

  app.get(
    '/aspects',
    {
      schema: {
        operationId: 'listAspects',
        tags,
        summary: 'List your aspects',
        description: 'In your order.',
        querystring: Type.Object(indexPaging),
        response: { 200: Type.Array(refTo(Aspect), { description: 'Your aspects, in your order.' }) },
      },
      config: { scopes: ['contacts:read'] },
    },
    async (request, reply) => {
      const page = readIndexPage(request)
      const aspects = await readList(request, (services) => listAspects(services, request.viewer, page))
      linkIndexPages(reply, page, aspects)
      return aspects.items.map(presentAspect)
    },
  )

  app.post(
    '/aspects',
    {
      schema: {
        operationId: 'createAspect',
        tags,
        summary: 'Create an aspect',
        description: 'The new aspect is empty and comes last.',
        body: Type.Object({ name }),
        response: { 200: refTo(Aspect, 'The new aspect.') },
      },
      config: { scopes: ['contacts:modify'], refusals: { ...invalidName, too_many_aspects: 422 } },
    },
    async (request) => presentAspect(await createAspect(request.services, request.viewer, request.body.name)),
  )

  app.get(
    '/aspects/:id',
    {
      schema: {
        operationId: 'getAspect',
        tags,
        summary: 'Read an aspect',
        description: 'One of your own aspects.',
        params,
        response: { 200: refTo(Aspect, 'The aspect.') },
      },
      config: { scopes: ['contacts:read'], refusals: missing },
    },
    async (request) => presentAspect(await getAspect(request.services, request.viewer, readRowId(request.params.id))),
  )

  app.route({
    method: ['PATCH', 'PUT'],
    url: '/aspects/:id',
    schema: {
      operationId: 'changeAspect',
      tags,
      summary: 'Rename or move an aspect',
      description:
        'Changes all given fields or none. With `order` the aspect moves to that position and the others move.',
      params,
      body: Type.Object({
        name: Type.Optional(name),
        order: Type.Optional(numberField({ minimum: 0, digits: 9, description: 'The position, from 1.' })),
      }),
      response: { 200: refTo(Aspect, 'The aspect after the change.') },
    },
    config: { findObject: findAspect, scopes: ['contacts:modify'], refusals: { ...missing, ...invalidName } },
    handler: async (request) => {
      const { name, order } = request.body
      const change = { name, position: order === undefined ? undefined : Number(order) }
      return presentAspect(await changeAspect(request.services, request.viewer, readRowId(request.params.id), change))
    },
  })

  app.delete(
    '/aspects/:id',
    {
      schema: {
        operationId: 'deleteAspect',
        tags,
        summary: 'Delete an aspect',
        description:
          'You stop sharing with people who are in no other aspect; remote pods are notified. Posts that were already shared stay shared.',
        params,
        response: { 204: Type.Null({ description: 'The aspect is deleted.' }) },
      },
      config: { scopes: ['contacts:modify'], refusals: { aspect_not_found: { status: 422, field: 'id' } } },
    },
    async (request, reply) => {
      await deleteAspect(request.services, request.viewer, readRowId(request.params.id))
      return reply.code(204).send(null)
    },
  )
}
