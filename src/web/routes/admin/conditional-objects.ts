import type { FastifyRequest } from 'fastify'
import type { Knex } from 'knex'
import { findWholeCase } from '../../../domain/moderation/cases.js'
import { readCluster } from '../../../domain/moderation/clusters/clusters.js'
import { readModerationFilter } from '../../../domain/moderation/filters/filters.js'
import { findWholePerson } from '../../../domain/moderation/people.js'
import { readRule } from '../../../domain/moderation/pods/pod-rules.js'
import { readContent } from '../../../domain/moderation/read-content.js'
import { readPod } from '../../../domain/operations/pods.js'
import type { Pod } from '../../../pod/pod.js'
import type { ConditionalObject, ConditionalObjects } from '../../api/conditional-writes.js'
import { presentWholeCluster } from '../../presenters/clusters.js'
import { presentWholeFilter } from '../../presenters/filters.js'
import { presentContent, presentWholeCase, presentWholePersonRecord } from '../../presenters/moderation.js'
import { presentPodRule } from '../../presenters/pod-rules.js'
import { presentPod } from '../../presenters/pods.js'
import { findRequestActor } from './actor-of.js'

/** The single objects of the admin API, as their GET shows them. */
export const CONDITIONAL_OBJECTS: ConditionalObjects = {
  '/cases/:id': {
    ...{ table: 'moderation_cases', column: 'id' },
    read: async (request, transaction, id) =>
      presentWholeCase(await findWholeCase(...(await given(request, transaction)), Number(id)), configOf(request)),
  },
  '/posts/:guid': content('post'),
  '/comments/:guid': content('comment'),
  '/people/:guid': {
    ...{ table: 'people', column: 'guid' },
    read: async (request, transaction, guid) =>
      presentWholePersonRecord(await findWholePerson(...(await given(request, transaction)), guid), configOf(request)),
  },
  '/pods/:host': {
    ...{ table: 'pods', column: 'host' },
    read: async (request, transaction, host) => {
      const [pod, actor] = await given(request, transaction)
      return presentPod(await readPod(pod, actor, host), pod.now())
    },
  },
  '/pod_rules/:id': {
    ...{ table: 'pod_rules', column: 'id' },
    read: async (request, transaction, id) =>
      presentPodRule(await readRule(...(await given(request, transaction)), Number(id))),
  },
  '/filters/:id': {
    ...{ table: 'filters', column: 'id' },
    read: async (request, transaction, id) =>
      presentWholeFilter(await readModerationFilter(...(await given(request, transaction)), Number(id))),
  },
  '/clusters/:id': {
    ...{ table: 'clusters', column: 'id' },
    read: async (request, transaction, id) =>
      presentWholeCluster(await readCluster(...(await given(request, transaction)), Number(id))),
  },
}

function content(type: 'post' | 'comment'): ConditionalObject {
  return {
    ...{ table: `${type}s`, column: 'guid' },
    read: async (request, transaction, guid) => {
      const foundContent = await readContent(transaction, await findRequestActor(request, 'moderation'), { type, guid })
      return presentContent({ type, guid }, foundContent, configOf(request))
    },
  }
}

async function given(request: FastifyRequest, transaction: Knex.Transaction) {
  const pod: Pod = { ...request.server.pod, db: transaction }
  return [pod, await findRequestActor(request, 'moderation')] as const
}

function configOf({ server }: FastifyRequest): Pod['config'] {
  return server.pod.config
}
