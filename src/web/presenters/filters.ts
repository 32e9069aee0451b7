import type { FilterDryRun } from '../../domain/moderation/filters/dry-run.js'
import type { FilterDetails } from '../../domain/moderation/filters/filters.js'
import type { ListedFilter } from '../../persistence/moderation/filters.js'

export function presentFilter(filter: ListedFilter) {
  const { id, kind, value, fields, origin, action, state } = filter
  return {
    id,
    kind,
    value,
    fields: [...fields],
    origin,
    account_age_days: filter.accountAgeDays,
    exempt_followed: filter.exemptFollowed,
    private: filter.isPrivate,
    action,
    state,
    hits_30_days: filter.hitsIn30Days,
    created_by: filter.createdBy,
    created_at: filter.createdAt.toISOString(),
    changed_at: filter.changedAt.toISOString(),
  }
}

export function presentFilterDetails({ days, latest, ...filter }: FilterDetails) {
  return {
    ...presentFilter(filter),
    days: days.map(({ day, hits }) => ({ day, hits })),
    latest: latest.map(({ targetType: type, targetGuid: guid, authorAddress: author, field, excerpt, at, effect }) => {
      return { type, guid, author, field, text: excerpt, at: at.toISOString(), effect }
    }),
  }
}

export function presentDryRun({ samples, scannedFrom, hits, authors, pods, followed, complete }: FilterDryRun) {
  return {
    hits,
    authors,
    pods,
    followed,
    samples: samples.map(({ excerpt: text, ...sample }) => ({ ...sample, text })),
    scanned_from: scannedFrom.toISOString(),
    complete,
  }
}
