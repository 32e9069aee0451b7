import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { type Static, Type } from 'typebox'
import {
  createMessage,
  getConversation,
  leaveConversation,
  listConversationMessages,
  listConversations,
  setConversationRead,
  startConversation,
} from '../../../domain/conversations/conversations.js'
import { readDialect } from '../../api/dialect.js'
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
import {
  presentConversation,
  presentMarkedConversation,
  presentMessage,
  presentStartedConversation,
} from '../../presenters/conversations.js'
import { BooleanField, readBoolean } from '../../schemas/booleans.js'
import { Conversation, MarkedConversation, Message, StartedConversation } from '../../schemas/conversations.js'
import { onlyAfter, onlyUnread, readOnlyAfter, readOnlyUnread } from '../../schemas/polling-filters.js'
import { refTo } from '../../schemas/references.js'

const tags = ['Conversations']
const scopes = ['conversations'] as const
const params = Type.Object({ guid: Type.String() })
const missing = { conversation_not_found: 404 }

/** Private conversations. Each participant has separate read marks, and may delete a conversation for themselves. */
export const conversationRoutes: FastifyPluginAsyncTypebox = async (app) => {
  const findConversation = objectFinder<Static<typeof params>>((request) =>
    getConversation(request.services, request.viewer, request.params.guid),
  )

  app.get(
    '/conversations',
    {
      schema: {
        operationId: 'listConversations',
        tags,
        summary: 'List your conversations',
        description:
          'Newest first. `only_after` selects conversations with a message after that time, `only_unread=true` those with unread messages.',
        querystring: Type.Object({ ...timePaging, ...onlyAfter, ...onlyUnread }),
        response: { 200: Type.Array(refTo(Conversation), { description: 'Your conversations, newest first.' }) },
      },
      config: { scopes },
    },
    async (request, reply) => {
      const page = readTimePage(request)
      const filter = { ...page, ...readOnlyAfter(request.query), ...readOnlyUnread(request.query) }
      const conversations = await readList(request, (services) => listConversations(services, request.viewer, filter))
      linkTimePages(reply, page, conversations)
      return conversations.items.map((conversation) => presentConversation(conversation, app.services.config))
    },
  )

  app.post(
    '/conversations',
    {
      schema: {
        operationId: 'startConversation',
        tags,
        summary: 'Start a conversation',
        description: 'Sends a first message to mutual contacts: to all of them or to none.',
        body: Type.Object({
          subject: Type.String({ description: '1 to 255 characters.' }),
          body: Type.String({ description: 'The first message: Markdown, 1 to 65 535 characters.' }),
          recipients: Type.Array(Type.String(), { description: 'The guids of 1 to 100 mutual contacts of yours.' }),
        }),
        response: { 201: refTo(StartedConversation, 'The new conversation.') },
      },
      config: {
        scopes,
        refusals: {
          malformed: 422,
          invalid: 422,
          subject_invalid: 422,
          text_invalid: 422,
          filtered: 422,
          recipients_invalid: 422,
        },
      },
    },
    async (request, reply) => {
      const { subject, body: text, recipients: recipientGuids } = request.body
      const conversation = await startConversation(request.services, request.viewer, { subject, text, recipientGuids })
      return reply.code(201).send(presentStartedConversation(conversation, readDialect(request)))
    },
  )

  app.get(
    '/conversations/:guid',
    {
      schema: {
        operationId: 'getConversation',
        tags,
        summary: 'Read a conversation',
        description: 'Does not mark the conversation as read.',
        params,
        response: { 200: refTo(Conversation, 'The conversation.') },
      },
      config: { scopes, refusals: missing },
    },
    async (request) => {
      const conversation = await getConversation(request.services, request.viewer, request.params.guid)
      return presentConversation(conversation, app.services.config)
    },
  )

  app.route({
    method: ['PATCH', 'PUT'],
    url: '/conversations/:guid',
    schema: {
      operationId: 'markConversation',
      tags,
      summary: 'Mark a conversation as read or unread',
      description:
        'For you alone. The answer is a list of one; in the dialect `diaspora` it is the conversation itself.',
      params,
      body: Type.Object({ read: BooleanField }),
      response: { 200: MarkedConversation },
    },
    config: { findObject: findConversation, scopes, refusals: { ...missing, invalid: 422 } },
    handler: async (request) => {
      const isRead = readBoolean(request.body.read)
      const conversation = await setConversationRead(request.services, request.viewer, request.params.guid, isRead)
      return presentMarkedConversation(conversation, readDialect(request))
    },
  })

  app.delete(
    '/conversations/:guid',
    {
      schema: {
        operationId: 'leaveConversation',
        tags,
        summary: 'Delete a conversation',
        description: 'Only for you: the other participants keep it, and later messages do not bring it back.',
        params,
        response: { 204: Type.Null({ description: 'The conversation is deleted for you.' }) },
      },
      config: { scopes, refusals: missing },
    },
    async (request, reply) => {
      await leaveConversation(request.services, request.viewer, request.params.guid)
      return reply.code(204).send(null)
    },
  )

  app.get(
    '/conversations/:guid/messages',
    {
      schema: {
        operationId: 'listMessages',
        tags,
        summary: 'List the messages of a conversation',
        description:
          'Oldest first, in order of arrival; `only_after` compares the time of arrival. Does not mark the conversation as read.',
        params,
        querystring: Type.Object({ ...indexPaging, ...onlyAfter }),
        response: { 200: Type.Array(refTo(Message), { description: 'The messages, oldest first.' }) },
      },
      config: { scopes, refusals: missing, findObject: findConversation },
    },
    async (request, reply) => {
      const { guid } = request.params
      const filter = { ...readIndexPage(request), ...readOnlyAfter(request.query) }
      const messages = await readList(request, (services) =>
        listConversationMessages(services, request.viewer, guid, filter),
      )
      linkIndexPages(reply, filter, messages)
      return messages.items.map((message) => presentMessage(message, app.services.config))
    },
  )

  app.post(
    '/conversations/:guid/messages',
    {
      schema: {
        operationId: 'writeMessage',
        tags,
        summary: 'Write a message',
        description: 'The conversation becomes unread for the other participants.',
        params,
        body: Type.Object({ body: Type.String({ description: 'Markdown, 1 to 65 535 characters.' }) }),
        response: { 201: refTo(Message, 'The new message.') },
      },
      config: {
        findObject: findConversation,
        scopes,
        refusals: { ...missing, malformed: 422, invalid: 422, text_invalid: 422, filtered: 422 },
      },
    },
    async (request, reply) => {
      const { guid: conversationGuid } = request.params
      const message = await createMessage(request.services, request.viewer, {
        conversationGuid,
        text: request.body.body,
      })
      return reply.code(201).send(presentMessage(message, app.services.config))
    },
  )
}
