import type { FastifyRequest } from 'fastify'
import type { Knex } from 'knex'
import { readSignUp } from '../../../domain/accounts/sign-ups/open-sign-up.js'
import { requireAction } from '../../../domain/moderation/actions.js'
import type { Actor } from '../../../domain/moderation/actor.js'
import { getCaseDetails } from '../../../domain/moderation/cases.js'
import { readCluster } from '../../../domain/moderation/clusters/clusters.js'
import { readModerationFilter } from '../../../domain/moderation/filters/filters.js'
import { getPersonDetails } from '../../../domain/moderation/people/people.js'
import { readImportWithoutRows } from '../../../domain/moderation/pods/pod-rule-imports.js'
import { readRule } from '../../../domain/moderation/pods/pod-rules.js'
import { readContent } from '../../../domain/moderation/read-content.js'
import { readInvitationRecord } from '../../../domain/moderation/sign-ups/invitations.js'
import { requireNetworkRule } from '../../../domain/moderation/sign-ups/network-rules.js'
import { readHostPort, readPod } from '../../../domain/operations/pods.js'
import { QUEUES } from '../../../jobs/queues/queue-names.js'
import { type Services, withTransaction } from '../../../services/services.js'
import type {
  ConditionalObject,
  ConditionalObjects,
  RequiredObject,
  RequiredObjects,
} from '../../api/conditional-writes.js'
import { presentClusterDetails } from '../../presenters/clusters.js'
import { presentFilterDetails } from '../../presenters/filters.js'
import { presentCaseDetails, presentContent, presentPersonDetails } from '../../presenters/moderation.js'
import { presentPodRule } from '../../presenters/pod-rules.js'
import { presentPod } from '../../presenters/pods.js'
import { RequestFault } from '../../server/request-faults.js'
import { getRequestActor } from './actor-of.js'

/** The single objects of the admin API, as their GET shows them. */
export const CONDITIONAL_OBJECTS: ConditionalObjects = {
  '/cases/:id': {
    table: 'moderation_cases',
    column: 'id',
    read: async (request, transaction, id) =>
      presentCaseDetails(
        await getCaseDetails(...(await readArguments(request, transaction)), Number(id)),
        configOf(request),
      ),
  },
  '/posts/:guid': contentObject('post'),
  '/comments/:guid': contentObject('comment'),
  '/people/:guid': {
    table: 'people',
    column: 'guid',
    read: async (request, transaction, guid) =>
      presentPersonDetails(
        await getPersonDetails(...(await readArguments(request, transaction)), guid),
        configOf(request),
      ),
  },
  '/pods/:host': {
    table: 'pods',
    column: 'host',
    keysOf: readHostPort,
    versionOf: versionOfPod,
    read: async (request, transaction, host) => {
      const [services, actor] = await readArguments(request, transaction)
      return presentPod(await readPod(services, actor, host), services.now())
    },
  },
  '/pod_rules/:id': {
    table: 'pod_rules',
    column: 'id',
    read: async (request, transaction, id) =>
      presentPodRule(await readRule(...(await readArguments(request, transaction)), Number(id))),
  },
  '/filters/:id': {
    table: 'filters',
    column: 'id',
    read: async (request, transaction, id) =>
      presentFilterDetails(await readModerationFilter(...(await readArguments(request, transaction)), Number(id))),
  },
  '/clusters/:id': {
    table: 'clusters',
    column: 'id',
    read: async (request, transaction, id) =>
      presentClusterDetails(await readCluster(...(await readArguments(request, transaction)), Number(id))),
  },
}

/** The objects of all paths, also those that no GET shows. */
export const REQUIRED_OBJECTS: RequiredObjects = {
  ...CONDITIONAL_OBJECTS,
  '/actions/:id': numberedObject(requireAction),
  '/invitations/:id': numberedObject(readInvitationRecord),
  '/sign_ups/:id': numberedObject(readSignUp),
  '/mail_rules/:id': networkRule('mail_rules'),
  '/ip_rules/:id': networkRule('ip_rules'),
  '/queues/:name': {
    async read(_request, _transaction, name) {
      if (!QUEUES.some((queue) => queue === name)) throw new RequestFault(404, 'There is no queue with this name.')
    },
  },
  '/pod_rules/imports/:id': {
    async read(request, transaction, id) {
      const services = withTransaction(request.server.services, transaction)
      await readImportWithoutRows(services, await getRequestActor(request, 'administration'), Number(id))
    },
  },
}

/** Counts, failures and probes change by themselves; decisions are about the rest. */
function versionOfPod(pod: Partial<ReturnType<typeof presentPod>>): unknown {
  const { host, blocked_at: blockedAt, limited_at: limitedAt, paused_until: pausedUntil, rules } = pod
  const decided = rules?.map(({ pods_met: _counted, ...rule }) => rule)
  return [host, blockedAt, limitedAt, pausedUntil, pod.state === 'asleep', decided]
}

function networkRule(table: 'mail_rules' | 'ip_rules'): RequiredObject {
  return numberedObject((services, actor, id) => requireNetworkRule(services, actor, { table, id }))
}

function numberedObject(find: (services: Services, actor: Actor, id: number) => Promise<unknown>): RequiredObject {
  return {
    read: async (request, transaction, id) => find(...(await readArguments(request, transaction)), Number(id)),
  }
}

function contentObject(type: 'post' | 'comment'): ConditionalObject {
  return {
    table: `${type}s`,
    column: 'guid',
    read: async (request, transaction, guid) => {
      const foundContent = await readContent(transaction, await getRequestActor(request, 'moderation'), { type, guid })
      return presentContent({ type, guid }, foundContent, configOf(request))
    },
  }
}

async function readArguments(request: FastifyRequest, transaction: Knex.Transaction) {
  const services: Services = withTransaction(request.server.services, transaction)
  return [services, await getRequestActor(request, 'moderation')] as const
}

function configOf({ server }: FastifyRequest): Services['config'] {
  return server.services.config
}
