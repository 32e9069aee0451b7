import { labelOfRule } from '../../domain/moderation/sign-ups/network-rules.js'
import type { IpRule, MailRule } from '../../persistence/moderation/network-rules.js'

function presentSettings({ comment, until, hits, createdAt, createdBy }: MailRule | IpRule) {
  return {
    comment,
    until: until?.toISOString() ?? null,
    hits: Number(hits),
    created_at: createdAt.toISOString(),
    created_by: createdBy,
  }
}

export function presentMailRule(rule: MailRule) {
  const { id, kind, severity } = rule
  return { id, kind, value: labelOfRule(rule), severity, ...presentSettings(rule), read_only: false }
}

/** A domain of the setting EMAIL_DOMAIN_BLOCKLIST. */
export function presentListedDomain(domain: string) {
  const unknown = { comment: 'EMAIL_DOMAIN_BLOCKLIST', until: null, hits: 0, created_by: null }
  return { id: null, kind: 'domain' as const, value: domain, severity: 'reject' as const, ...unknown, read_only: true }
}

export function presentIpRule(rule: IpRule) {
  const { id, network: cidr, severity } = rule
  return { id, cidr, severity, ...presentSettings(rule) }
}
