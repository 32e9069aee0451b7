import type { ArchiveReport } from '../imports/check-archive.js'

/** The report of a check as JSON. */
export type PresentedReport = ReturnType<typeof presentReport>

export function presentReport(report: ArchiveReport) {
  const { file, oldAddress, identity, sections, refused, posts, photos, contacts, warnings } = report
  return {
    file,
    old_address: oldAddress,
    identity,
    sections,
    refused,
    posts,
    photos: { named: photos.named, found: photos.found, missing: photos.missing, not_named: photos.notNamed },
    contacts: {
      reachable: contacts.reachable,
      moved: contacts.moved,
      closed: contacts.closed,
      unreachable: contacts.unreachable,
      on_blocked_pods: contacts.onBlockedPods,
    },
    warnings,
  }
}
