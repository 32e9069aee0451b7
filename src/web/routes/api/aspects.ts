import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, Type } from 'typebox'
import { changeAspect, createAspect, findAspect, listAspects } from '../../../domain/contacts/aspects.js'
import { deleteAspect } from '../../../domain/contacts/contacts.js'
import { missingFirst } from '../../api/missing-first.js'
import { indexPaging, linkIndexPages, readIndexPage } from '../../api/paging.js'
import { readList } from '../../api/read-list.js'
import { presentAspect } from '../../presenters/aspects.js'
import { Aspect, refTo } from '../../schemas/common.js'
import { numberField, readRowId } from '../../schemas/numbers.js'

const tags = ['Aspects']
const params = Type.Object({ id: Type.String() })
const name = Type.String({ description: '1 to 20 characters, and no other aspect of yours has it in any case.' })
const missing = { aspect_not_found: 404 }
const unfit = { name_invalid: 422, name_taken: 422, invalid: 422 }

/** The groups in which people keep those they share with. */
export const aspectRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const ownAspect = missingFirst<Static<typeof params>>((request) =>
    findAspect(app.pod, request.viewer, readRowId(request.params.id)),
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
        response: { 200: Type.Array(refTo(Aspect)) },
      },
      config: { scopes: ['contacts:read'] },
    },
    async (request, reply) => {
      const page = readIndexPage(request)
      const aspects = await readList(request, (pod) => listAspects(pod, request.viewer, page))
      linkIndexPages(request, reply, page, aspects)
      return aspects.items.map(presentAspect)
    },
  )

  app.post(
    '/aspects',
    {
      schema: {
        operationId: 'createAspect',
        tags,
        summary: 'Make an aspect',
        description: 'It comes behind your others, with nobody in it.',
        body: Type.Object({ name }),
        response: { 200: refTo(Aspect) },
      },
      config: { scopes: ['contacts:modify'], refusals: unfit },
    },
    async (request) => presentAspect(await createAspect(app.pod, request.viewer, request.body.name)),
  )

  app.get(
    '/aspects/:id',
    {
      schema: {
        operationId: 'getAspect',
        tags,
        summary: 'Read about an aspect',
        description: 'One of your own.',
        params,
        response: { 200: refTo(Aspect) },
      },
      config: { scopes: ['contacts:read'], refusals: missing },
    },
    async (request) => presentAspect(await findAspect(app.pod, request.viewer, readRowId(request.params.id))),
  )

  app.route({
    method: ['PATCH', 'PUT'],
    url: '/aspects/:id',
    ...ownAspect,
    schema: {
      operationId: 'changeAspect',
      tags,
      summary: 'Rename an aspect, or move it',
      description:
        'All of it or nothing. With `order` it comes to that place, and your other aspects make room for it.',
      params,
      body: Type.Object({
        name: Type.Optional(name),
        order: Type.Optional(numberField({ minimum: 0, digits: 9, description: 'The first one is 1.' })),
      }),
      response: { 200: refTo(Aspect) },
    },
    config: { scopes: ['contacts:modify'], refusals: { ...missing, ...unfit } },
    handler: async (request) => {
      const { name, order } = request.body
      const change = { name, position: order === undefined ? undefined : Number(order) }
      return presentAspect(await changeAspect(app.pod, request.viewer, readRowId(request.params.id), change))
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
          'You share no longer with those who are in no other, and they are told. What you have shared with them already they keep.',
        params,
        response: { 204: Type.Null({ description: 'Deleted.' }) },
      },
      config: { scopes: ['contacts:modify'], refusals: { aspect_not_found: { status: 422, field: 'id' } } },
    },
    async (request, reply) => {
      await deleteAspect(app.pod, request.viewer, readRowId(request.params.id))
      return reply.code(204).send(null)
    },
  )
}
