import { Type } from 'typebox'
import { POD_RULE_STATES } from '../../../persistence/moderation/pod-rules.js'
import { Timestamp } from '../formats.js'
import { nullable } from '../references.js'
import { Count } from './counts.js'

export const PodRuleState = Type.Enum([...POD_RULE_STATES])

export const PodRuleSchema = Type.Object(
  {
    id: Type.Integer(),
    domain: Type.String({ description: 'Lower case, in ASCII.' }),
    subdomains: Type.Boolean({ description: 'The rule applies to subdomains as well.' }),
    port: nullable(Type.Integer({ description: 'Null: every port. 443 stands for 80 too.' })),
    state: PodRuleState,
    reason: Type.String({ description: 'Only moderators and admins read it.' }),
    public_comment: Type.String({ description: 'Part of the exported list.' }),
    obfuscate: Type.Boolean(),
    until: nullable(Timestamp),
    source: Type.Enum(['manual', 'import']),
    batch_id: nullable(Type.Integer({ description: 'The import that has made or changed it last.' })),
    pods_met: Type.Integer({ description: 'Known pods within the domain.' }),
    created_at: Timestamp,
    created_by: Type.String(),
  },
  { $id: 'PodRule', description: 'A rule for the pods of a domain. The rule with the longest domain counts.' },
)

export const PodPreviewSchema = Type.Object(
  {
    domain: Type.String(),
    subdomains: Type.Boolean(),
    port: nullable(Type.Integer()),
    pods: Type.Array(Type.Object({ host: Type.String(), people: Type.Integer() }), {
      description: 'The first 50 known pods.',
    }),
    pods_met: Count,
    people: Count,
    local_users: Count,
    local_followers: Count,
    remote_followers: Count,
    contacts: Count,
    posts: Count,
    comments: Count,
    photos: Count,
    conversations: Count,
    deliveries_waiting: Count,
    cases: Count,
  },
  { $id: 'PodPreview', description: 'What a rule for a domain concerns. Relations are pairs of a user and a person.' },
)
