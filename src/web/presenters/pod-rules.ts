import type { PodRuleImportPlan } from '../../domain/moderation/pods/pod-rule-imports.js'
import type { ListedPodRule } from '../../persistence/moderation/pod-rules.js'

export function presentPodRule(rule: ListedPodRule) {
  const { id, domain, subdomains, port, state, reason, obfuscate, source } = rule
  return {
    id,
    domain,
    subdomains,
    port,
    state,
    reason,
    public_comment: rule.publicComment,
    obfuscate,
    until: rule.until?.toISOString() ?? null,
    source,
    batch_id: rule.batchId,
    pods_met: rule.knownPods,
    created_at: rule.createdAt.toISOString(),
    created_by: rule.createdBy,
  }
}

export function presentPodRuleImport({ plan, rows }: PodRuleImportPlan) {
  const counts = { add: 0, change: 0, covered: 0, skip: 0 }
  for (const { verdict } of rows) counts[verdict] += 1
  const chosenRows = rows.filter((row) => row.chosen)
  return {
    id: plan.id,
    mode: plan.mode,
    state: plan.state,
    preview: { ...counts, chosen: chosenRows.length, contacts: rows.reduce((sum, { contacts }) => sum + contacts, 0) },
    rows: rows.map(({ id, domain, port, severity, verdict, fault, contacts, chosen: isChosen, step }) => ({
      id,
      domain,
      port,
      severity,
      verdict,
      fault,
      chosen: isChosen,
      step,
      preview: { contacts },
    })),
  }
}
