import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, Type } from 'typebox'
import { blockForUser, listBlocks, unblockForUser } from '../../../domain/people/blocks.js'
import {
  getVisiblePerson,
  listVisiblePhotos,
  listVisiblePosts,
  requireAuthor,
} from '../../../domain/people/visible-people.js'
import { objectFinder } from '../../api/missing-objects-first.js'
import {
  indexPaging,
  linkIndexPages,
  linkTimePages,
  readIndexPage,
  readTimePage,
  timePaging,
} from '../../api/paging.js'
import { readList } from '../../api/read-list.js'
import { presentPerson, presentPersonSummary } from '../../presenters/people.js'
import { presentPhoto } from '../../presenters/photos.js'
import { presentPost } from '../../presenters/posts.js'
import { OtherPerson, PersonSummary } from '../../schemas/people.js'
import { Photo, Post } from '../../schemas/posts.js'
import { refTo } from '../../schemas/references.js'

const params = Type.Object({ person_guid: Type.String() })
const querystring = Type.Object(timePaging)
const BlockedResponse = Type.Unsafe<undefined>({ type: 'null', description: 'The person is blocked.' })
const missing = { person_not_found: 404 }

/** Profiles, posts and photos of other people, and blocks. */
export const usersRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const findAuthor = objectFinder<Static<typeof params>>((request) =>
    requireAuthor(request.services, request.params.person_guid),
  )

  app.get(
    '/users/:person_guid',
    {
      schema: {
        operationId: 'getPerson',
        tags: ['People'],
        summary: 'Read the profile of a person',
        description:
          'Any person known to this pod, local or remote. The scope `contacts:read` adds the relationship between you, and shows people who are hidden from search. A person who has moved away from this pod is a 410 with `moved_to`.',
        params,
        response: { 200: refTo(OtherPerson, 'The profile of the person.') },
      },
      config: { scopes: ['public:read'], refusals: { ...missing, moved: 410 } },
    },
    async (request) => {
      return presentPerson(
        await getVisiblePerson(request.services, request.viewer, request.params.person_guid),
        app.services.config,
      )
    },
  )

  app.get(
    '/users/:person_guid/posts',
    {
      schema: {
        operationId: 'listPostsOfPerson',
        tags: ['People'],
        summary: 'List the posts of a person',
        description:
          'Posts and reshares, newest first. Private posts need the scope `private:read`: those that the person shared with you, or all of your own.',
        params,
        querystring,
        response: { 200: Type.Array(refTo(Post), { description: 'The posts of the person, newest first.' }) },
      },
      config: { scopes: ['public:read'], refusals: missing, findObject: findAuthor },
    },
    async (request, reply) => {
      const { person_guid: author } = request.params
      const page = readTimePage(request)
      const posts = await readList(request, (services) => listVisiblePosts(services, request.viewer, author, page))
      linkTimePages(reply, page, posts)
      return posts.items.map((post) => presentPost(post, app.services.config))
    },
  )

  app.get(
    '/users/:person_guid/photos',
    {
      schema: {
        operationId: 'listPhotosOfPerson',
        tags: ['People'],
        summary: 'List the photos of a person',
        description: 'Newest first. Private photos need the scope `private:read`.',
        params,
        querystring,
        response: { 200: Type.Array(refTo(Photo), { description: 'The photos of the person, newest first.' }) },
      },
      config: { scopes: ['public:read'], refusals: missing, findObject: findAuthor },
    },
    async (request, reply) => {
      const { person_guid: author } = request.params
      const page = readTimePage(request)
      const photos = await readList(request, (services) => listVisiblePhotos(services, request.viewer, author, page))
      linkTimePages(reply, page, photos)
      return photos.items.flatMap((photo) => presentPhoto(photo, app.services.config) ?? [])
    },
  )

  app.get(
    '/blocks',
    {
      schema: {
        operationId: 'listBlocks',
        tags: ['People'],
        summary: 'List the people you block',
        description: 'The newest block first.',
        querystring: Type.Object(indexPaging),
        response: { 200: Type.Array(refTo(PersonSummary), { description: 'The people you block.' }) },
      },
      config: { scopes: ['contacts:read'] },
    },
    async (request, reply) => {
      const page = readIndexPage(request)
      const blocks = await readList(request, (services) => listBlocks(services, request.viewer, page))
      linkIndexPages(reply, page, blocks)
      return blocks.items.map((person) => presentPersonSummary(person, app.services.config))
    },
  )

  app.post(
    '/users/:person_guid/block',
    {
      schema: {
        operationId: 'blockPerson',
        tags: ['People'],
        summary: 'Block a person',
        description:
          "You stop sharing with the person and see none of their posts in streams. A blocked user of this pod cannot comment on, like or vote on your posts. A remote person's pod is notified.",
        params,
        response: { 201: BlockedResponse },
      },
      config: { scopes: ['contacts:modify'], refusals: { ...missing, own_person: 422, already_blocked: 409 } },
    },
    async (request, reply) => {
      await blockForUser(request.services, request.viewer, request.params.person_guid)
      // `null` would be serialised as JSON.
      return reply.code(201).send(undefined)
    },
  )

  app.delete(
    '/users/:person_guid/block',
    {
      schema: {
        operationId: 'unblockPerson',
        tags: ['People'],
        summary: 'Unblock a person',
        description: 'The earlier contact is not restored.',
        params,
        response: { 204: Type.Null({ description: 'The person is no longer blocked.' }) },
      },
      config: { scopes: ['contacts:modify'], refusals: { ...missing, not_blocked: 410 } },
    },
    async (request, reply) => {
      await unblockForUser(request.services, request.viewer, request.params.person_guid)
      return reply.code(204).send(null)
    },
  )
}
