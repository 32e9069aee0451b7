import type { IdentityState } from '../../../src/federation/archives/imports/archive-identity.js'
import type { ArchiveReport, ArchiveWarning } from '../../../src/federation/archives/imports/check-archive.js'
import type { ImportRejectionReason } from '../../../src/federation/archives/imports/import-context.js'
import { type ArchiveImport, IMPORT_SECTIONS, type ImportCounts } from '../../../src/persistence/archives/imports.js'
import { table } from '../../output.js'
import { describeBytes } from '../../progress.js'

const IDENTITIES: Readonly<Record<IdentityState, string>> = {
  proven: 'the key of the archive is the key of this account',
  unproven:
    'this pod does not know the account, and its pod does not answer: other pods verify the move by the key they know',
  closed: 'the account was deleted: posts, comments and likes cannot be imported',
  moved_here: 'it has moved to this account before: only missing content is added',
  local: 'the account is on this pod',
  same: 'it is this account: only missing content is added',
}

const REASONS: Readonly<Record<ImportRejectionReason, string>> = {
  schema: 'cannot be read',
  foreign_author: 'written by another person than the owner of the archive',
  guid_taken: 'another author has this guid',
  deleted_before: 'deleted by its author, or by the author of the post',
  too_long: 'the text is too long',
  empty: 'has no content',
  parent_missing: 'its post is not on this pod and could not be fetched',
  root_missing: 'the reshared post is gone, not public, or could not be fetched',
  author_unknown: 'the author could not be looked up, so the signature cannot be verified',
  signature_missing: 'the signature of the author is missing',
  signature_wrong: 'the signature of the author is wrong',
  local_author: 'an account of this pod would be the author',
  blocked: 'this account blocks the person',
  pod_blocked: 'this pod blocks the pod of the person',
  not_found: 'the person could not be looked up',
  closed: 'the account of the person is closed',
  self: 'the owner of the archive',
  duplicate: 'there is one by the same person already',
  photo_file_missing: 'the zip has no such file: the photo stays on the old pod',
  photo_unusable: 'the file is not a picture, or too large',
  over_quota: 'the photos of the account take all the space that they may take',
  over_limit: 'too many unknown people on one pod in a day',
}

const WARNINGS: Readonly<Record<ArchiveWarning, string>> = {
  no_photos_given: 'No zip of photos is given: photos stay on the old pod, as long as it runs.',
  identity_unproven: 'The owner of the archive cannot be proven, because the old pod does not answer.',
  new_account_has_contacts:
    'The account already has contacts: diaspora* users who share with both accounts lose the aspects of the old contact.',
  friendica_contacts: 'Some contacts are on Friendica: they get the announcement in the form that Friendica accepts.',
  old_pod_blocked: 'This pod blocks the old pod.',
}

/** The report of a check, for people. */
export function describeReport(file: string, report: ArchiveReport, isForAccount: boolean): readonly string[] {
  const { version, bytes, sha256 } = report.file
  const { posts, photos, contacts } = report
  return [
    `${file}: archive of version ${version}, ${describeBytes(bytes)}, SHA-256 ${sha256}`,
    `Account: ${report.oldAddress} – ${report.identity}: ${IDENTITIES[report.identity]}`,
    '',
    ...describeCounts(report.sections, 'importable'),
    '',
    `Posts: ${posts.public} public, ${posts.private} private`,
    `Photos: ${photos.named} named, ${photos.found} in the zip, ${photos.missing} missing, ${photos.notNamed} entries of the zip not used`,
    `Contacts: ${contacts.reachable} reachable, ${contacts.moved} moved, ${contacts.closed} closed, ` +
      `${contacts.unreachable} not found, ${contacts.onBlockedPods} on blocked pods`,
    ...describeRefused(report),
    ...report.warnings.map((warning) => `Warning: ${WARNINGS[warning]} (${warning})`),
    '',
    'Nothing was changed. Posts, comments, likes and votes are imported only with --move ' +
      `${report.oldAddress}. What refers to posts on other pods is fetched then, and may be refused.`,
    ...(isForAccount ? [] : ['Use --for <username> to compare the archive with an account.']),
  ]
}

function describeRefused({ refused }: ArchiveReport): readonly string[] {
  const rows = Object.entries(refused).flatMap(([section, items]) =>
    items.map(({ ref, reason }) => [`  ${section}`, ref, `${reason}: ${reasonText(reason)}`]),
  )
  return rows.length === 0 ? [] : ['', 'Refused (at most 100 of each section):', ...table(rows)]
}

/** An import that is over, or that a worker continues. */
export function describeImport({ uid, state, oldAddress, options, counts, phase }: ArchiveImport): readonly string[] {
  if (state === 'running') return [`The import ${uid} has begun (${phase}). A worker of the running pod does the rest.`]
  const reasons = new Map<string, number>()
  for (const section of Object.values(counts)) {
    for (const [reason, count] of Object.entries(section.by_reason))
      reasons.set(reason, (reasons.get(reason) ?? 0) + count)
  }
  return [
    `The import ${uid} of ${oldAddress} is ${state}.`,
    '',
    ...describeCounts(counts, 'imported'),
    ...(reasons.size === 0 ? [] : ['', 'Refused:']),
    ...table([...reasons].map(([reason, count]) => [`  ${count}`, `${reason}: ${reasonText(reason)}`])),
    '',
    ...(reasons.size === 0 ? [] : [`pod archive items ${uid} lists each item.`]),
    ...(options.move
      ? [
          `${oldAddress} has moved. Other pods get the announcement from the workers; pod archive moves shows how many know it.`,
        ]
      : options.content
        ? []
        : ['The account has not moved: posts, comments and likes are not imported without --move.']),
  ]
}

function reasonText(reason: string): string {
  return Object.hasOwn(REASONS, reason) ? REASONS[reason as ImportRejectionReason] : reason // checked before
}

function describeCounts(counts: ImportCounts, imported: string): readonly string[] {
  const rows = IMPORT_SECTIONS.flatMap((section) => {
    const sectionCounts = counts[section]
    if (sectionCounts === undefined) return []
    return [
      [
        section,
        ...[sectionCounts.found, sectionCounts.imported, sectionCounts.skipped, sectionCounts.refused].map(String),
      ],
    ]
  })
  return table([['', 'found', imported, 'already there', 'refused'], ...rows])
}
