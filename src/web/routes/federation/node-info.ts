import type { FastifyPluginAsync } from 'fastify'
import { cacheResult } from '../../../concurrency/cache-result.js'
import { readSoftware } from '../../../config/software.js'
import { isApprovalOn } from '../../../domain/accounts/sign-ups/unattended.js'
import { countUsage, type Usage } from '../../../persistence/operations/usage.js'
import { isNodeInfoVersion, NODE_INFO_VERSIONS, nodeInfoSchema, presentNodeInfo } from '../../presenters/node-info.js'
import { RequestFault } from '../../server/request-faults.js'
import { SERVE_LIMITS } from './limits.js'

/** NodeInfo: software, protocols and usage of this pod, for clients, other pods and statistics sites. */
export const nodeInfoRoutes: FastifyPluginAsync = async (app) => {
  const { services } = app
  const config = { public: true, quiet: true } as const
  const schema = { hide: true }
  const { sourceUrl } = services.config
  const software = { ...readSoftware(), ...(sourceUrl !== undefined && { repository: sourceUrl }) }
  const usage: () => Promise<Usage> = cacheResult(() => countUsage(services.db), SERVE_LIMITS.usageAgeMs)

  const approval = cacheResult(() => isApprovalOn(services), SERVE_LIMITS.approvalAgeMs)

  app.get('/.well-known/nodeinfo', { config, schema }, async (_request, reply) => {
    const links = NODE_INFO_VERSIONS.map((version) => ({
      rel: nodeInfoSchema(version),
      href: `${services.config.url}/nodeinfo/${version}`,
    }))
    return reply.type('application/json; charset=utf-8').send({ links })
  })

  app.get<{ Params: { version: string } }>('/nodeinfo/:version', { config, schema }, async (request, reply) => {
    const { version } = request.params
    if (!isNodeInfoVersion(version)) throw new RequestFault(404, 'NodeInfo is not available in this version.')
    const content = {
      config: services.config,
      software,
      approval: await approval(),
      ...(services.config.statistics && { usage: await usage() }),
    }
    return reply
      .type(`application/json; profile=${nodeInfoSchema(version)}#; charset=utf-8`)
      .send(JSON.stringify(presentNodeInfo(version, content)))
  })
}
