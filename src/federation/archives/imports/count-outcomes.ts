import { TRIED_AGAIN } from '../../../persistence/archives/import-retries.js'
import {
  IMPORT_SECTIONS,
  type ImportCounts,
  type ImportSection,
  type ItemOutcome,
  type SectionCounts,
} from '../../../persistence/archives/imports.js'
import { IMPORT_LIMITS } from '../limits.js'
import type { SpooledArchive } from '../reading/spool-archive.js'

const NO_ITEMS: SectionCounts = { found: 0, imported: 0, skipped: 0, refused: 0, by_reason: {} }

/** The counts before the import: what the archive has. */
export function countsOfFound({ counts }: Pick<SpooledArchive, 'counts'>, photos: number): ImportCounts {
  const sectionSizes: Readonly<Record<ImportSection, number>> = {
    profile: 1,
    settings: 1,
    aspects: counts.contact_groups,
    contacts: counts.contacts,
    blocks: counts.blocks,
    tags: counts.followed_tags,
    posts: counts.posts,
    relayables: counts.own_comments + counts.own_reactions,
    others_relayables: counts.others_comments + counts.others_reactions,
    subscriptions: counts.post_subscriptions,
    conversations: counts.conversations,
    photos,
  }
  // Only archives of this software have conversations.
  const sections = IMPORT_SECTIONS.filter((section) => section !== 'conversations' || counts.conversations > 0)
  return Object.fromEntries(sections.map((section) => [section, { ...NO_ITEMS, found: sectionSizes[section] }]))
}

/** Adds the outcomes of a batch. */
export function addOutcomes(counts: ImportCounts, outcomes: readonly ItemOutcome[]): ImportCounts {
  const sum: Partial<Record<ImportSection, SectionCounts>> = { ...counts }
  for (const { section, outcome, reason } of outcomes) {
    const before = sum[section] ?? NO_ITEMS
    if (outcome === 'imported') sum[section] = { ...before, imported: before.imported + 1 }
    else if (outcome === 'already_there') sum[section] = { ...before, skipped: before.skipped + 1 }
    else {
      const name = reason ?? 'other'
      const by_reason = { ...before.by_reason, [name]: (before.by_reason[name] ?? 0) + 1 }
      sum[section] = { ...before, refused: before.refused + 1, by_reason }
    }
  }
  return sum
}

/** Separates refused items beyond the limit of their section and reason, which are only counted. Items that are tried again have a row. */
export function separateUnlisted(
  counts: ImportCounts,
  outcomes: readonly ItemOutcome[],
): { readonly listed: readonly ItemOutcome[]; readonly unlisted: readonly ItemOutcome[] } {
  const refusals = new Map<string, number>()
  const isListed = ({ section, reason }: ItemOutcome) => {
    if (reason === null || TRIED_AGAIN.includes(reason)) return true
    const key = `${section} ${reason}`
    const before = refusals.get(key) ?? counts[section]?.by_reason[reason] ?? 0
    refusals.set(key, before + 1)
    return before < IMPORT_LIMITS.listedRefusals
  }
  const listed = outcomes.filter(isListed)
  const kept = new Set(listed)
  return { listed, unlisted: outcomes.filter((outcome) => !kept.has(outcome)) }
}
