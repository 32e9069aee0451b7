import type { ClusterDetails, ListedCluster } from '../../domain/moderation/clusters/clusters.js'
import type { CleanParts, CleanPreview } from '../../domain/moderation/clusters/plan-cleaning.js'
import { presentOperation } from './operations.js'

export function presentCluster({ id, kind, label, state, caseId, firstAt, lastAt, ...counts }: ListedCluster) {
  return {
    id,
    kind,
    label,
    state,
    case_id: caseId,
    items: counts.itemCount,
    authors: counts.authorCount,
    pods: counts.podCount,
    first_at: firstAt.toISOString(),
    last_at: lastAt.toISOString(),
  }
}

export function presentClusterDetails({ items, authors, task, ...cluster }: ClusterDetails) {
  return {
    ...presentCluster(cluster),
    operation: task === undefined ? null : presentOperation(task),
    newest_items: items.map(({ type, guid, author, authorGuid, text, at, isHidden, isRetractable }) => {
      const fields = { type, guid, author, author_guid: authorGuid, text, found_at: at.toISOString() }
      return { ...fields, hidden: isHidden, retractable: isRetractable }
    }),
    busiest_authors: authors.map(({ guid, address, items: count, isLocal, isFollowed, firstSeenAt, isProposed }) => {
      const fields = { guid, address, items: count, local: isLocal, followed: isFollowed }
      return { ...fields, first_seen_at: firstSeenAt.toISOString(), ticked: isProposed }
    }),
  }
}

export function presentCleaning({ hide, remove, people, authors, pods, filter }: CleanPreview) {
  return { hide, remove, people, authors, pods: [...pods], filter: filter === undefined ? null : { ...filter } }
}

/** Parts that are not ticked are left out. */
export function readCleanParts(body: Partial<CleanParts>): CleanParts {
  const { hide = false, remove = false, filter = false, authors = 'none', pods = 'none', except = [] } = body
  return { hide, remove, filter, authors, pods, except }
}
