import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, Type } from 'typebox'
import { getAspect } from '../../../domain/contacts/aspects.js'
import { listContacts, listContactsInAspect, requireOwnContacts } from '../../../domain/contacts/contact-lists.js'
import { addToAspect, removeFromAspect } from '../../../domain/contacts/contacts.js'
import { objectFinder } from '../../api/missing-objects-first.js'
import { indexPaging, linkIndexPages, readIndexPage } from '../../api/paging.js'
import { readList } from '../../api/read-list.js'
import { presentPersonSummary } from '../../presenters/people.js'
import { readRowId } from '../../schemas/numbers.js'
import { PersonSummary } from '../../schemas/people.js'
import { refTo } from '../../schemas/references.js'

const tags = ['Aspects']
const ofPerson = Type.Object({ person_guid: Type.String() })
const inAspect = Type.Object({ aspect_id: Type.String() })
const oneInAspect = Type.Object({ aspect_id: Type.String(), person_guid: Type.String() })
const querystring = Type.Object(indexPaging)
const missing = { aspect_not_found: 404 }

/** Existing clients use both names for the guid. */
const newMember = Type.Object(
  {
    person_guid: Type.Optional(Type.String({ description: 'The guid of any person known to this pod.' })),
    person: Type.Optional(Type.String({ description: 'Another name of `person_guid`.' })),
  },
  { anyOf: [{ required: ['person_guid'] }, { required: ['person'] }] },
)

/** Contacts: people the viewer shares with, or who share with the viewer. */
export const contactRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const findAspect = objectFinder<Static<typeof inAspect>>((request) =>
    getAspect(request.services, request.viewer, readRowId(request.params.aspect_id)),
  )
  const findOwnContacts = objectFinder<Static<typeof ofPerson>>((request) =>
    requireOwnContacts(request.services, request.viewer, request.params.person_guid),
  )

  app.get(
    '/aspects/:aspect_id/contacts',
    {
      schema: {
        operationId: 'listContactsInAspect',
        tags,
        summary: 'List the people in an aspect',
        description: 'Ordered by first name, last name and address.',
        params: inAspect,
        querystring,
        response: { 200: Type.Array(refTo(PersonSummary), { description: 'The people in the aspect.' }) },
      },
      config: { scopes: ['contacts:read'], refusals: missing, findObject: findAspect },
    },
    async (request, reply) => {
      const page = readIndexPage(request)
      const contacts = await readList(request, async (services) => {
        const { id } = await getAspect(services, request.viewer, readRowId(request.params.aspect_id))
        return listContactsInAspect(services, id, page)
      })
      linkIndexPages(reply, page, contacts)
      return contacts.items.map((person) => presentPersonSummary(person, app.services.config))
    },
  )

  app.post(
    '/aspects/:aspect_id/contacts',
    {
      schema: {
        operationId: 'addContactToAspect',
        tags,
        summary: 'Add a person to an aspect',
        description: 'With the first aspect you start sharing with the person, who is notified.',
        params: inAspect,
        body: newMember,
        response: { 204: Type.Null({ description: 'The person is in the aspect.' }) },
      },
      config: {
        findObject: findAspect,
        scopes: ['contacts:modify'],
        refusals: {
          ...missing,
          person_not_found: { status: 422, field: 'person_guid' },
          own_person: 422,
          account_closed: 422,
          person_blocked: 422,
          already_in_aspect: 422,
          invalid: 422,
        },
      },
    },
    async (request, reply) => {
      const { person = '', person_guid: personGuid = person } = request.body
      const aspectId = readRowId(request.params.aspect_id)
      await addToAspect(request.services, request.viewer, { aspectId, personGuid })
      return reply.code(204).send(null)
    },
  )

  app.delete(
    '/aspects/:aspect_id/contacts/:person_guid',
    {
      schema: {
        operationId: 'removeContactFromAspect',
        tags,
        summary: 'Remove a person from an aspect',
        description: 'With the last aspect you stop sharing with the person; a remote pod is notified.',
        params: oneInAspect,
        response: { 204: Type.Null({ description: 'The person is no longer in the aspect.' }) },
      },
      config: {
        scopes: ['contacts:modify'],
        refusals: { ...missing, not_in_aspect: 404, person_not_found: { status: 422, field: 'person_guid' } },
      },
    },
    async (request, reply) => {
      const { aspect_id, person_guid: personGuid } = request.params
      await removeFromAspect(request.services, request.viewer, { aspectId: readRowId(aspect_id), personGuid })
      return reply.code(204).send(null)
    },
  )

  app.get(
    '/users/:person_guid/contacts',
    {
      schema: {
        operationId: 'listContacts',
        tags,
        summary: 'List your contacts',
        description:
          'All people you share with or who share with you, ordered by first name, last name and address. Only for your own guid.',
        params: ofPerson,
        querystring,
        response: { 200: Type.Array(refTo(PersonSummary), { description: 'Your contacts.' }) },
      },
      config: { scopes: ['contacts:read'], refusals: { person_not_found: 404 }, findObject: findOwnContacts },
    },
    async (request, reply) => {
      const page = readIndexPage(request)
      const contacts = await readList(request, async (services) => {
        await requireOwnContacts(services, request.viewer, request.params.person_guid)
        return listContacts(services, request.viewer, page)
      })
      linkIndexPages(reply, page, contacts)
      return contacts.items.map((person) => presentPersonSummary(person, app.services.config))
    },
  )
}
