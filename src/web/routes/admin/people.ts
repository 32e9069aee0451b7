import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import { Type } from 'typebox'
import type { Actor } from '../../../domain/moderation/actor.js'
import { endSessionsAsModerator } from '../../../domain/moderation/end-sessions.js'
import { addPersonNote } from '../../../domain/moderation/people/note-person.js'
import { listPeople, muteReports, readPerson } from '../../../domain/moderation/people/people.js'
import type { ActionOutcome } from '../../../domain/moderation/record-action.js'
import { blockOnPod, type RestrictOptions, silencePerson } from '../../../domain/moderation/restrict-person.js'
import { suspendAccount } from '../../../domain/moderation/restrict-user.js'
import type { Services } from '../../../services/services.js'
import { cursorPaging } from '../../api/cursor-paging.js'
import { linkIdPages, readIdPaging } from '../../api/id-paging.js'
import { presentPersonDetails, presentPersonRecord } from '../../presenters/moderation.js'
import {
  actionBody,
  actionRefusals,
  Changed,
  ListedPersonSchema,
  PersonDetailsSchema,
  personResponse,
  targetRefusals,
  until,
} from '../../schemas/moderation/moderation.js'
import { refTo } from '../../schemas/references.js'
import { readTime } from '../../schemas/times.js'
import { getRequestActor } from './actor-of.js'
import { withPerson } from './person-responses.js'

const tags = ['Moderated people']
const params = Type.Object({ guid: Type.String() })
const state = Type.Enum(['open', 'silenced', 'blocked', 'locked', 'closing', 'closed'])

type Run = (services: Services, actor: Actor, guid: string, options: RestrictOptions) => Promise<ActionOutcome>

interface PersonAction {
  readonly operationId: string
  readonly summary: string
  readonly description: string
  readonly run: Run
  readonly refusals: Readonly<
    Partial<Record<'not_local' | 'not_remote' | 'last_admin' | 'podmin_account' | 'confirmation_needed', number>>
  >
}

const ACTIONS: Readonly<Record<string, PersonAction>> = {
  silence: {
    operationId: 'silencePerson',
    summary: 'Silence a person',
    description:
      'Posts of the person are in the streams and searches of their followers only. They notify only followers, begin no conversations with others and are found by the exact address only. Threads, messages and deliveries stay as they are.',
    run: silencePerson,
    refusals: { podmin_account: 409 },
  },
  block: {
    operationId: 'blockRemotePerson',
    summary: 'Block a remote person',
    description:
      'Everything by the person is hidden, new messages from them are dropped, nothing is sent to them, and their contacts are inactive. Retractions, the end of sharing, account deletions and migrations of the person still count. A person with contacts on this pod needs `confirm`.',
    run: blockOnPod,
    refusals: { not_remote: 422, confirmation_needed: 409 },
  },
  lock: {
    operationId: 'lockAccount',
    summary: 'Lock a local account',
    description: 'No sign-in, and tokens are refused. Posts stay.',
    run: suspendAccount,
    refusals: { not_local: 422, last_admin: 409, podmin_account: 409 },
  },
  end_sessions: {
    operationId: 'endSessions',
    summary: 'End the sessions of a local account',
    description: 'Ends sessions, tokens and live streams of all apps. The person can sign in again.',
    run: endSessionsAsModerator,
    refusals: { not_local: 422 },
  },
}

/** People, and actions on them. */
export const peopleRoutes: FastifyPluginAsyncTypebox = async (app) => {
  app.get(
    '/people',
    {
      schema: {
        operationId: 'listModeratedPeople',
        tags,
        summary: 'List people',
        description: 'Local and remote people, the latest first.',
        querystring: Type.Object({
          q: Type.Optional(Type.String({ description: 'Part of the name, or the beginning of the address.' })),
          local: Type.Optional(Type.Boolean()),
          state: Type.Optional(state),
          role: Type.Optional(Type.Enum(['moderator', 'admin'])),
          pod: Type.Optional(Type.String({ description: 'The host of the address.' })),
          first_seen_after: Type.Optional(Type.String()),
          email: Type.Optional(
            Type.String({ description: 'The complete address. The search is recorded in the audit log.' }),
          ),
          ip: Type.Optional(
            Type.String({
              description:
                'An address or network that accounts were made or used from. The search is recorded in the audit log.',
            }),
          ),
          invited_by: Type.Optional(
            Type.String({
              description:
                'The number of an invitation, or the user name, address or guid of the person who has made invitations.',
            }),
          ),
          ...cursorPaging,
        }),
        response: { 200: Type.Array(refTo(ListedPersonSchema), { description: 'The people.' }) },
      },
      config: {
        scopes: ['moderation'],
        writes: true,
        refusals: { role_needed: 403, cidr_invalid: { status: 422, field: 'ip' } },
      },
    },
    async (request, reply) => {
      const {
        q: text,
        local: isLocal,
        state: of,
        role,
        pod: domain,
        first_seen_after: after,
        email,
        ip,
        invited_by: invitedBy,
        ...paging
      } = request.query
      const filter = {
        text,
        isLocal,
        state: of,
        role,
        domain: domain?.toLowerCase(),
        email,
        ip,
        invitedBy,
        firstSeenAfter: after === undefined ? undefined : readTime('first_seen_after', after),
      }
      const page = await listPeople(
        request.services,
        await getRequestActor(request, 'moderation'),
        filter,
        readIdPaging(paging),
      )
      linkIdPages(request, reply, page)
      return page.items.map((record) => presentPersonRecord(record, app.services.config))
    },
  )

  app.get(
    '/people/:guid',
    {
      schema: {
        operationId: 'getModeratedPerson',
        tags,
        summary: 'Read a person as a moderator',
        description:
          'With counts, and the source of each restriction. Reading e-mail and network addresses is recorded in the audit log.',
        params,
        response: { 200: refTo(PersonDetailsSchema, 'The person.') },
      },
      config: { scopes: ['moderation'], writes: true, refusals: { role_needed: 403, person_not_found: 404 } },
    },
    async (request) =>
      presentPersonDetails(
        await readPerson(request.services, await getRequestActor(request, 'moderation'), request.params.guid),
        app.services.config,
      ),
  )

  app.patch(
    '/people/:guid',
    {
      schema: {
        operationId: 'changeModeratedPerson',
        tags,
        summary: 'Mute the reports of a local person',
        description: 'Muted reports do not raise the rank of a case and do not notify moderators.',
        params,
        body: Type.Object({ reports_muted: Type.Boolean(), reason: actionBody.reason }),
        response: { 200: Type.Object(personResponse, { description: 'The setting holds: the person now.' }) },
      },
      config: {
        scopes: ['moderation'],
        refusals: { ...actionRefusals, ...targetRefusals, person_not_found: 404, not_local: 422 },
      },
    },
    async (request) => {
      const { reports_muted: muted, reason } = request.body
      const { guid } = request.params
      const actor = await getRequestActor(request, 'moderation')
      return withPerson(request, actor, guid, await muteReports(request.services, actor, guid, { muted, reason }))
    },
  )

  app.post(
    '/people/:guid/notes',
    {
      schema: {
        operationId: 'addPersonNote',
        tags,
        summary: 'Add a note about a person',
        description: 'Only moderators and admins read it.',
        params,
        body: Type.Object({ text: Type.String({ description: '1 to 2 000 characters.' }) }),
        response: { 200: Type.Object({ changed: Changed }, { description: 'The note is stored.' }) },
      },
      config: {
        scopes: ['moderation'],
        refusals: {
          role_needed: 403,
          person_not_found: 404,
          reason_needed: { status: 422, field: 'text' },
          reason_invalid: { status: 422, field: 'text' },
        },
      },
    },
    async (request) =>
      addPersonNote(request.services, await getRequestActor(request, 'moderation'), request.params.guid, request.body),
  )

  for (const [name, { run, refusals, ...words }] of Object.entries(ACTIONS)) {
    app.post(
      `/people/:guid/${name}`,
      {
        schema: {
          tags,
          ...words,
          params,
          body: Type.Object({
            ...actionBody,
            until,
            ...('confirmation_needed' in refusals && {
              confirm: Type.Optional(Type.String({ description: 'The address of the person.' })),
            }),
          }),
          response: { 200: Type.Object(personResponse, { description: 'The action is in force: the person now.' }) },
        },
        config: {
          scopes: ['moderation'],
          refusals: { ...actionRefusals, ...targetRefusals, person_not_found: 404, until_invalid: 422, ...refusals },
        },
      },
      async (request) => {
        const {
          reason,
          case_id: caseId,
          until: end,
          confirm,
        } = request.body as typeof request.body & { confirm?: string }
        const actor = await getRequestActor(request, 'moderation')
        const options = { reason, caseId, confirm, until: end === undefined ? undefined : readTime('until', end) }
        const { guid } = request.params
        return withPerson(request, actor, guid, await run(request.services, actor, guid, options))
      },
    )
  }
}
