import { people } from './0001-people.js'
import { contacts } from './0002-contacts.js'
import { posts } from './0003-posts.js'
import { interactions } from './0004-interactions.js'
import { tagsAndMentions } from './0005-tags-and-mentions.js'
import { conversations } from './0006-conversations.js'
import { notifications } from './0007-notifications.js'
import { clients } from './0008-clients.js'
import { work } from './0009-work.js'
import { meetingOthers } from './0010-meeting-others.js'
import { asking } from './0011-asking.js'
import { deliveries } from './0012-deliveries.js'
import { conversationStrangers } from './0013-conversation-strangers.js'
import { figures } from './0014-figures.js'
import { signingIn } from './0020-signing-in.js'
import { tombstonesByGuid } from './0021-tombstones-by-guid.js'
import { photoFiles } from './0022-photo-files.js'
import { streams } from './0023-streams.js'
import { live } from './0024-live.js'
import { idempotency } from './0025-idempotency.js'
import { namesOfPeople } from './0028-names-of-people.js'
import { lastWrites } from './0031-last-writes.js'
import { peopleNotForEverybody } from './0032-people-not-for-everybody.js'
import { roomBesidePosts } from './0033-room-beside-posts.js'
import { payloadsAsTheyAre } from './0034-payloads-as-they-are.js'
import { unprovenSenders } from './0043-unproven-senders.js'
import { deliveryLines } from './0046-delivery-lines.js'
import { unprovenDue } from './0067-unproven-due.js'
import { provenPeople } from './0068-proven-people.js'
import { deletedPosts } from './0084-deleted-posts.js'
import { outboxSenders } from './0085-outbox-senders.js'
import { publicTags } from './0086-public-tags.js'
import { answersOfPolls } from './0087-answers-of-polls.js'
import { endOfAccess } from './0088-end-of-access.js'
import { narrowedTokens } from './0089-narrowed-tokens.js'
import { arrivalOfMessages } from './0090-arrival-of-messages.js'
import { podsPutToSleep } from './0095-pods-put-to-sleep.js'
import { boundKeys } from './0096-bound-keys.js'
import { photoBytes } from './0097-photo-bytes.js'
import { podBytes } from './0098-pod-bytes.js'
import { plainNames } from './0099-plain-names.js'
import { clientDialects } from './0100-client-dialects.js'
import { podAccount } from './0101-pod-account.js'
import { tokenDialects } from './0103-token-dialects.js'
import { auditLog } from './0104-audit-log.js'
import { moderationCases } from './0105-moderation-cases.js'
import { queueControls } from './0110-queue-controls.js'
import { backupRuns } from './0112-backup-runs.js'
import { hiddenContent } from './0120-hidden-content.js'
import { personRestrictions } from './0121-person-restrictions.js'
import { podRules } from './0125-pod-rules.js'
import { pausedPods } from './0126-paused-pods.js'
import { operations } from './0127-operations.js'
import { invitationUses } from './0128-invitation-uses.js'
import { recentBlocks } from './0129-recent-blocks.js'
import { filters } from './0130-filters.js'
import { clusters } from './0131-clusters.js'
import { quarantine } from './0135-quarantine.js'
import { retention } from './0140-retention.js'
import { latestRelease } from './0141-latest-release.js'
import { personContent } from './0142-person-content.js'
import { closingAccounts } from './0143-closing-accounts.js'
import { userNotices } from './0144-user-notices.js'
import { personNotes } from './0145-person-notes.js'
import { traces } from './0150-traces.js'
import { caseAnnouncements } from './0153-case-announcements.js'
import { networkRules } from './0154-network-rules.js'
import { memberInvitations } from './0155-member-invitations.js'
import { accountMail } from './0156-account-mail.js'
import { pendingSignUps } from './0157-pending-sign-ups.js'
import { noticeMails } from './0158-notice-mails.js'
import { podActivity } from './0159-pod-activity.js'
import { filterTotals } from './0160-filter-totals.js'
import { checks } from './0161-checks.js'
import { browserSessions } from './0163-browser-sessions.js'
import { secondFactors } from './0164-second-factors.js'
import { knownBrowsers } from './0168-known-browsers.js'
import { imports } from './0173-imports.js'
import { announcedMigrations } from './0174-announced-migrations.js'
import { exports } from './0175-exports.js'
import { migrationEnvelopes } from './0176-migration-envelopes.js'
import { claimedFollowers } from './0177-claimed-followers.js'
import { importAttempts } from './0178-import-attempts.js'
import { powerOfActions } from './0180-power-of-actions.js'
import { takeOver } from './0181-take-over.js'
import { endedSessions } from './0185-ended-sessions.js'
import { emailUndos } from './0186-email-undos.js'
import { originOfSecondSteps } from './0188-origin-of-second-steps.js'
import { exportDownloads } from './0190-export-downloads.js'
import { pruneTotals } from './0199-prune-totals.js'
import { queueStore } from './0200-queue-store.js'
import { auditActors } from './0201-audit-actors.js'
import { importUploads } from './0204-import-uploads.js'
import { importedConversations } from './0205-imported-conversations.js'
import { importRetries } from './0206-import-retries.js'
import { releasedWaiting } from './0211-released-waiting.js'
import type { Migration } from './migration.js'

/**
 * Migrations in the order in which they run. Not every number is used. The database records the names, which have no ending, so that
 * TypeScript and JavaScript share one history.
 */
export const migrations: ReadonlyMap<string, Migration> = new Map([
  ['0001-people', people],
  ['0002-contacts', contacts],
  ['0003-posts', posts],
  ['0004-interactions', interactions],
  ['0005-tags-and-mentions', tagsAndMentions],
  ['0006-conversations', conversations],
  ['0007-notifications', notifications],
  ['0008-clients', clients],
  ['0009-work', work],
  ['0010-meeting-others', meetingOthers],
  ['0011-asking', asking],
  ['0012-deliveries', deliveries],
  ['0013-conversation-strangers', conversationStrangers],
  ['0014-figures', figures],
  ['0020-signing-in', signingIn],
  ['0021-tombstones-by-guid', tombstonesByGuid],
  ['0022-photo-files', photoFiles],
  ['0023-streams', streams],
  ['0024-live', live],
  ['0025-idempotency', idempotency],
  ['0028-names-of-people', namesOfPeople],
  ['0031-last-writes', lastWrites],
  ['0032-people-not-for-everybody', peopleNotForEverybody],
  ['0033-room-beside-posts', roomBesidePosts],
  ['0034-payloads-as-they-are', payloadsAsTheyAre],
  ['0043-unproven-senders', unprovenSenders],
  ['0046-delivery-lines', deliveryLines],
  ['0067-unproven-due', unprovenDue],
  ['0068-proven-people', provenPeople],
  ['0084-deleted-posts', deletedPosts],
  ['0085-outbox-senders', outboxSenders],
  ['0086-public-tags', publicTags],
  ['0087-answers-of-polls', answersOfPolls],
  ['0088-end-of-access', endOfAccess],
  ['0089-narrowed-tokens', narrowedTokens],
  ['0090-arrival-of-messages', arrivalOfMessages],
  ['0095-pods-put-to-sleep', podsPutToSleep],
  ['0096-bound-keys', boundKeys],
  ['0097-photo-bytes', photoBytes],
  ['0098-pod-bytes', podBytes],
  ['0099-plain-names', plainNames],
  ['0100-client-dialects', clientDialects],
  ['0101-pod-account', podAccount],
  ['0103-token-dialects', tokenDialects],
  ['0104-audit-log', auditLog],
  ['0105-moderation-cases', moderationCases],
  ['0110-queue-controls', queueControls],
  ['0112-backup-runs', backupRuns],
  ['0120-hidden-content', hiddenContent],
  ['0121-person-restrictions', personRestrictions],
  ['0125-pod-rules', podRules],
  ['0126-paused-pods', pausedPods],
  ['0127-operations', operations],
  ['0128-invitation-uses', invitationUses],
  ['0129-recent-blocks', recentBlocks],
  ['0130-filters', filters],
  ['0131-clusters', clusters],
  ['0135-quarantine', quarantine],
  ['0140-retention', retention],
  ['0141-latest-release', latestRelease],
  ['0142-person-content', personContent],
  ['0143-closing-accounts', closingAccounts],
  ['0144-user-notices', userNotices],
  ['0145-person-notes', personNotes],
  ['0150-traces', traces],
  ['0153-case-announcements', caseAnnouncements],
  ['0154-network-rules', networkRules],
  ['0155-member-invitations', memberInvitations],
  ['0156-account-mail', accountMail],
  ['0157-pending-sign-ups', pendingSignUps],
  ['0158-notice-mails', noticeMails],
  ['0159-pod-activity', podActivity],
  ['0160-filter-totals', filterTotals],
  ['0161-checks', checks],
  ['0163-browser-sessions', browserSessions],
  ['0164-second-factors', secondFactors],
  ['0168-known-browsers', knownBrowsers],
  ['0173-imports', imports],
  ['0174-announced-migrations', announcedMigrations],
  ['0175-exports', exports],
  ['0176-migration-envelopes', migrationEnvelopes],
  ['0177-claimed-followers', claimedFollowers],
  ['0178-import-attempts', importAttempts],
  ['0180-power-of-actions', powerOfActions],
  ['0181-take-over', takeOver],
  ['0185-ended-sessions', endedSessions],
  ['0186-email-undos', emailUndos],
  ['0188-origin-of-second-steps', originOfSecondSteps],
  ['0190-export-downloads', exportDownloads],
  ['0199-prune-totals', pruneTotals],
  ['0200-queue-store', queueStore],
  ['0201-audit-actors', auditActors],
  ['0204-import-uploads', importUploads],
  ['0205-imported-conversations', importedConversations],
  ['0206-import-retries', importRetries],
  ['0211-released-waiting', releasedWaiting],
])
