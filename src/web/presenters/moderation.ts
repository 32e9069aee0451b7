import type { CaseDetails, CaseWithActions, ListedCase } from '../../domain/moderation/cases.js'
import type { ContentTarget, FoundContent } from '../../domain/moderation/find-content.js'
import type { PersonDetails } from '../../domain/moderation/people/people.js'
import type { ActionRow } from '../../persistence/moderation/actions.js'
import type { CaseEvent, CaseReport, LiveEventCase, OwnReport } from '../../persistence/moderation/cases.js'
import type { PersonRecord } from '../../persistence/moderation/people-records.js'
import { presentPersonSummary } from './people.js'
import type { PodAddresses } from './picture-urls.js'

/** Mark of hidden content in responses to its author, who alone is shown it. */
export const HIDDEN = { hidden: true, text: 'A moderator of this pod has hidden this. Only you can see it.' } as const

/** The data of a live event: no text, no names. */
export function presentLiveEventCase({ id, state, kind, reportCount }: LiveEventCase) {
  return { id, state, kind, reports: reportCount }
}

export function presentListedCase(listed: CaseWithActions, addresses: PodAddresses) {
  const { targetType: type, targetGuid: guid, targetCreatedAt } = listed
  return {
    id: listed.id,
    state: listed.state,
    kind: listed.kind,
    target: {
      type,
      guid,
      author: presentAuthor(listed, addresses),
      public: listed.public,
      url: urlOf(listed, addresses),
      created_at: targetCreatedAt?.toISOString() ?? null,
      hidden: listed.isHidden,
      deleted: listed.targetDeleted,
      parent: listed.parentGuid,
      photos: [...listed.photoGuids],
    },
    report_count: listed.reportCount,
    reporter_count: listed.reporterCount,
    ignore_further: listed.ignoreFurther,
    taken_by: listed.takenBy,
    taken_at: listed.takenAt?.toISOString() ?? null,
    first_reported_at: listed.firstReportedAt.toISOString(),
    last_reported_at: listed.lastReportedAt.toISOString(),
    actions: listed.actions.map(({ id, kind, reason, createdAt, canBeUndone, undoneById }) => ({
      id,
      kind,
      reason,
      created_at: createdAt.toISOString(),
      undone: undoneById !== null,
      undo: { possible: canBeUndone && undoneById === null },
    })),
  }
}

export function presentCaseDetails(details: CaseDetails, addresses: PodAddresses) {
  const { target, ...listed } = presentListedCase(details, addresses)
  return {
    ...listed,
    target: { ...target, text: details.text },
    reports: details.reports.items.toReversed().map(presentCaseReport),
    history: details.events.items.toReversed().map(presentCaseEvent),
  }
}

export function presentCaseReport({ id, reporterGuid, reporterName, reason, createdAt }: CaseReport) {
  return {
    id,
    reporter: { guid: reporterGuid, username: reporterName },
    reason,
    created_at: createdAt.toISOString(),
  }
}

export function presentCaseEvent({ at, actorName, event, text, actionId }: CaseEvent) {
  return { at: at.toISOString(), actor: actorName, event, text, action_id: actionId }
}

export function presentContent({ type, guid }: ContentTarget, content: FoundContent, addresses: PodAddresses) {
  return {
    type,
    guid,
    author: presentPersonSummary(content.author, addresses),
    public: content.public,
    created_at: content.createdAt.toISOString(),
    text: content.text,
    hidden: content.isHidden,
    post: content.postGuid,
    case_id: content.caseId ?? null,
  }
}

export function presentPersonRecord(record: PersonRecord, addresses: PodAddresses) {
  return {
    ...presentPersonSummary(record, addresses),
    local: record.isLocal,
    state: record.state,
    role: record.role ?? 'none',
    first_seen_at: record.firstSeenAt.toISOString(),
    reports_muted: record.reportsMuted ?? false,
    restrictions: record.restrictions.map(({ actionId, kind, by, until }) => ({
      action_id: actionId,
      kind,
      by,
      until: until === null ? null : new Date(until).toISOString(),
    })),
  }
}

export function presentPersonDetails({ counts, notes, warnings, ...record }: PersonDetails, addresses: PodAddresses) {
  const presentedNotes = notes.map(({ actor, text, createdAt }) => ({ at: createdAt.toISOString(), actor, text }))
  return {
    ...presentPersonRecord(record, addresses),
    last_active_at: record.lastActiveAt?.toISOString() ?? null,
    email: record.email,
    email_confirmed: record.emailConfirmedAt !== null,
    ips: [
      ...addressAt('sign_up', record.signUpIp, record.signedUpAt),
      ...addressAt('sign_in', record.signInIp, record.signInAt),
    ],
    invited_by: record.invitationId,
    followed_here: record.followers,
    counts,
    warnings,
    notes: presentedNotes,
  }
}

function addressAt(usedFor: 'sign_up' | 'sign_in', ip: string | null, at: Date | null) {
  return ip === null ? [] : [{ ip, used_for: usedFor, at: at?.toISOString() ?? null }]
}

export function presentAction(action: ActionRow) {
  const { targetType: type, targetGuid: guid, targetLabel: label, canBeUndone, undoneById } = action
  return {
    id: action.id,
    kind: action.kind,
    target: { type, guid, label },
    actor: action.actor,
    reason: action.reason,
    case_id: action.caseId,
    until: action.until?.toISOString() ?? null,
    created_at: action.createdAt.toISOString(),
    undone_by: undoneById,
    undo: { possible: canBeUndone && undoneById === null },
  }
}

export function presentOwnReport({ createdAt, targetType, targetGuid, isClosed }: OwnReport) {
  return {
    target: { type: targetType, guid: targetGuid },
    created_at: createdAt.toISOString(),
    state: isClosed ? ('closed' as const) : ('open' as const),
  }
}

function presentAuthor(
  { authorGuid: guid, authorAddress: address, authorName, authorAvatarUrl }: ListedCase,
  addresses: PodAddresses,
) {
  if (guid === null || address === null) return null
  return presentPersonSummary({ guid, address, name: authorName ?? '', avatarUrl: authorAvatarUrl }, addresses)
}

/** The page of public content; private content has none. */
function urlOf(
  { targetType, targetGuid, parentGuid, public: isPublic, authorGuid }: ListedCase,
  { url }: PodAddresses,
) {
  if (!isPublic) return null
  if (targetType === 'post') return `${url}/posts/${targetGuid}`
  if (targetType === 'comment') return `${url}/posts/${parentGuid}#${targetGuid}`
  return targetType === 'person' ? `${url}/people/${authorGuid}` : null
}
