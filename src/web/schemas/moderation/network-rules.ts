import { Type } from 'typebox'
import { IP_RULE_SEVERITIES, MAIL_RULE_SEVERITIES } from '../../../persistence/moderation/network-rules.js'
import { Timestamp } from '../formats.js'
import { nullable } from '../references.js'

export const MailRuleSeveritySchema = Type.Enum([...MAIL_RULE_SEVERITIES], {
  description: '`reject`: no sign-up. `approve`: a moderator decides.',
})
export const IpRuleSeveritySchema = Type.Enum([...IP_RULE_SEVERITIES], {
  description:
    '`sign_up_approval`: a moderator decides about sign-ups. `sign_up_block`: no sign-up. `no_access`: neither pages nor API; other pods still reach the pod.',
})

const ruleFields = {
  comment: Type.String({ description: 'Only moderators and admins read it.' }),
  until: nullable(Timestamp),
  hits: Type.Integer({ description: 'Sign-ups to which the rule has applied.' }),
}

export const MailRuleSchema = Type.Object(
  {
    id: nullable(Type.Integer({ description: 'Null: from the setting EMAIL_DOMAIN_BLOCKLIST.' })),
    kind: Type.Enum(['email', 'domain']),
    value: Type.String({ description: 'The domain; of an e-mail address the rest is not stored.' }),
    severity: MailRuleSeveritySchema,
    ...ruleFields,
    created_at: Type.Optional(Timestamp),
    created_by: nullable(Type.String()),
    read_only: Type.Boolean(),
  },
  { $id: 'MailRule', description: 'A rule for sign-ups with an e-mail address or with addresses of a domain.' },
)

export const IpRuleSchema = Type.Object(
  {
    id: Type.Integer(),
    cidr: Type.String(),
    severity: IpRuleSeveritySchema,
    ...ruleFields,
    created_at: Timestamp,
    created_by: Type.String(),
  },
  { $id: 'IpRule', description: 'A rule for a network.' },
)
