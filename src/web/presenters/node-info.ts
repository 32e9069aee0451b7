import type { Config } from '../../config/config.js'
import type { Software } from '../../config/software.js'
import type { Usage } from '../../persistence/operations/usage.js'

/** Not version 1.0, whose schema allows only three products by name. */
export const NODE_INFO_VERSIONS = ['2.0', '2.1'] as const

export type NodeInfoVersion = (typeof NODE_INFO_VERSIONS)[number]

export function isNodeInfoVersion(text: string): text is NodeInfoVersion {
  return (NODE_INFO_VERSIONS as readonly string[]).includes(text)
}

export function nodeInfoSchema(version: NodeInfoVersion): string {
  return `http://nodeinfo.diaspora.software/ns/schema/${version}`
}

/** The NodeInfo document. Its schema allows no other members. Usage is present only if the operator publishes statistics. */
export function presentNodeInfo(
  version: NodeInfoVersion,
  {
    config,
    software,
    usage,
    approval,
  }: {
    readonly config: Config
    readonly software: Software
    readonly usage?: Usage
    /** Sign-ups need the decision of a moderator. */
    readonly approval: boolean
  },
): object {
  const { name, version: release, ...links } = software
  return {
    version,
    software: { name, version: release, ...(version === '2.1' && links) },
    protocols: ['diaspora'],
    services: { inbound: [], outbound: [] },
    openRegistrations: config.registrations === 'open',
    usage: usage ? presentUsage(usage) : { users: {} },
    metadata: { nodeName: config.podName, ...(approval && { approvalRequired: true }) },
  }
}

function presentUsage({ users, activeHalfyear, activeMonth, posts, comments }: Usage): object {
  return { users: { total: users, activeHalfyear, activeMonth }, localPosts: posts, localComments: comments }
}
