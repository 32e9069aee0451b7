import type { ImportCounts, ImportSection, ItemOutcome } from '../../../persistence/archives/imports.js'
import { Contact } from '../../../persistence/models/contact.js'
import { RemotePod } from '../../../persistence/models/remote-pod.js'
import { parseAddress, splitAddress } from '../../../protocol/address.js'
import type { Services } from '../../../services/services.js'
import { parseHomeUrl, parsePodHost } from '../../discovery/pod-location.js'
import { IMPORT_LIMITS } from '../limits.js'
import { isBlockedHere, openPeopleFinder } from '../lookups/people-finder.js'
import type { ImportingUser } from '../owner.js'
import type { ArchiveFile } from '../reading/archive-file.js'
import { readArchiveHeader } from '../reading/archive-header.js'
import { type ArchiveOwner, type ArchiveVersion, readArchiveOwner, readMembers } from '../reading/archive-owner.js'
import { readPhotoNames, readPhotosZip, requireZipSize } from '../reading/archive-photos.js'
import { readItems } from '../reading/items-of-version.js'
import { type SpooledArchive, spooledBatches } from '../reading/spool-archive.js'
import {
  allowsContent,
  allowsConversations,
  type ClaimedIdentity,
  type IdentityState,
  identifyArchive,
} from './archive-identity.js'
import { listDistinctAspectNames } from './aspect-names.js'
import { addOutcomes, countsOfFound } from './count-outcomes.js'
import type { ImportContext } from './import-context.js'
import { CONTENT_IMPORTERS, PRIVATE_IMPORTERS, RELATION_IMPORTERS } from './list-importers.js'

/** The effects of an import of an archive. */
export interface ArchiveReport {
  readonly file: { readonly version: ArchiveVersion; readonly bytes: number; readonly sha256: string }
  readonly oldAddress: string
  readonly identity: IdentityState
  /** `imported`: could be imported. */
  readonly sections: ImportCounts
  /** The first refused items of each section. */
  readonly refused: Readonly<
    Partial<Record<ImportSection, readonly { readonly ref: string; readonly reason: string }[]>>
  >
  readonly posts: { readonly public: number; readonly private: number }
  readonly photos: PhotosReport
  readonly contacts: ContactsReport
  readonly warnings: readonly ArchiveWarning[]
}

interface PhotosReport {
  readonly named: number
  readonly found: number
  readonly missing: number
  readonly notNamed: number
}

interface ContactsReport {
  reachable: number
  moved: number
  closed: number
  unreachable: number
  onBlockedPods: number
}

export type ArchiveWarning =
  | 'no_photos_given'
  | 'identity_unproven'
  | 'new_account_has_contacts'
  | 'friendica_contacts'
  | 'old_pod_blocked'

export interface CheckRequest extends Pick<ClaimedIdentity, 'hasLaterAttempt'> {
  readonly spooled: SpooledArchive
  readonly user: ImportingUser
  readonly photosFile: ArchiveFile | undefined
  readonly signal: AbortSignal
  reportProgress?(section: string, done: number, total: number): void
}

const REFUSED_NAMED = 100

/** Reads a whole archive and says what an import would do. It looks up people and changes nothing else. */
export async function checkArchive(services: Services, request: CheckRequest): Promise<ArchiveReport> {
  const { spooled, user, hasLaterAttempt = false } = request
  const owner = readArchiveOwner(spooled.values)
  const identity = await identifyArchive(services, { ...owner, hasLaterAttempt }, user)
  const people = openPeopleFinder(services, IMPORT_LIMITS.lookupsOfCheckMs)
  const context: ImportContext = {
    services,
    user,
    version: owner.version,
    oldAddress: owner.address,
    oldPersonId: identity.personId,
    aspectNames: await listDistinctAspectNames(spooled, owner),
    people,
    fetches: undefined,
    importId: undefined,
    planned: { posts: new Set(), comments: new Set(), polls: new Set() },
    signal: request.signal,
  }
  const { profile } = readArchiveHeader(spooled.values, owner, services.now())
  const photos = await checkPhotos(services, request, profile ?? {})
  const { counts, refused } = await prepareAll(context, request, countsOfFound(spooled, photos.named), identity.state)
  const contacts = await checkContacts(context, spooled)
  return {
    file: { version: owner.version, bytes: spooled.bytes, sha256: spooled.sha256 },
    oldAddress: owner.address,
    identity: identity.state,
    sections: withSinglePieces(counts, photos, profile !== undefined),
    refused,
    posts: await countPosts(spooled, owner),
    photos,
    contacts: contacts.counts,
    warnings: await findWarnings(context, identity.state, {
      photos,
      hasZip: request.photosFile !== undefined,
      friendica: contacts.friendica,
    }),
  }
}

async function prepareAll(context: ImportContext, request: CheckRequest, found: ImportCounts, state: IdentityState) {
  let counts = found
  const refusals: Partial<Record<ImportSection, { ref: string; reason: string }[]>> = {}
  const importers = [
    ...RELATION_IMPORTERS,
    ...(allowsContent(state, true) ? CONTENT_IMPORTERS : []),
    ...(allowsConversations(state, true) ? PRIVATE_IMPORTERS : []),
  ]
  for (const importer of importers) {
    const { section, list } = importer
    const total = request.spooled.counts[list]
    for await (const { items, lines } of spooledBatches(request.spooled.folder, list)) {
      request.signal.throwIfAborted()
      const { outcomes, ready } = await importer.prepare(context, readItems(context, list, items))
      const importable = ready.map((item): ItemOutcome => ({ ...item, section, outcome: 'imported', reason: null }))
      counts = addOutcomes(counts, [...outcomes, ...importable])
      const namedRefusals = refusals[section] ?? []
      refusals[section] = namedRefusals
      for (const { ref, reason } of outcomes) {
        if (reason !== null && namedRefusals.length < REFUSED_NAMED) namedRefusals.push({ ref, reason })
      }
      request.reportProgress?.(section, lines, total)
    }
  }
  return { counts, refused: refusals }
}

/** Profile and settings are one piece each; photos are files of the zip. */
function withSinglePieces(counts: ImportCounts, photos: PhotosReport, hasProfile: boolean): ImportCounts {
  const importedOnce = { found: 1, imported: 1, skipped: 0, refused: 0, by_reason: {} }
  const missing = photos.missing > 0 ? { photo_file_missing: photos.missing } : {}
  return {
    ...counts,
    profile: hasProfile ? importedOnce : { ...importedOnce, imported: 0, refused: 1, by_reason: { schema: 1 } },
    settings: importedOnce,
    photos: { found: photos.named, imported: photos.found, skipped: 0, refused: photos.missing, by_reason: missing },
  }
}

async function checkPhotos(
  services: Services,
  { spooled, photosFile }: CheckRequest,
  profile: Readonly<Record<string, unknown>>,
): Promise<PhotosReport> {
  const names = await readPhotoNames(spooled, profile)
  if (photosFile === undefined) return { named: names.size, found: 0, missing: names.size, notNamed: 0 }
  requireZipSize(photosFile, services.config.importPhotoBytes)
  const { found, notNamed } = await readPhotosZip(photosFile, names)
  return { named: names.size, found, missing: names.size - found, notNamed }
}

async function countPosts(spooled: SpooledArchive, owner: ArchiveOwner): Promise<ArchiveReport['posts']> {
  const counts = { public: 0, private: 0 }
  for await (const { items } of spooledBatches(spooled.folder, 'posts')) {
    for (const { value } of readItems({ version: owner.version, oldAddress: owner.address }, 'posts', items)) {
      const members = readMembers(value)
      const isPublic =
        members?.['entity_type'] === 'reshare' || readMembers(members?.['entity_data'])?.['public'] === true
      counts[isPublic ? 'public' : 'private'] += 1
    }
  }
  return counts
}

async function checkContacts(context: ImportContext, spooled: SpooledArchive) {
  const counts: ContactsReport = { reachable: 0, moved: 0, closed: 0, unreachable: 0, onBlockedPods: 0 }
  let isFriendica = false
  for await (const { items } of spooledBatches(spooled.folder, 'contacts')) {
    const addresses = readItems(context, 'contacts', items).flatMap(({ value }) => {
      const address = readMembers(value)?.['account_id']
      return typeof address === 'string' ? (parseAddress(address) ?? []) : []
    })
    for (const lookup of (await context.people.find(addresses, context.signal)).values()) {
      if (lookup.state === 'refused') counts[lookup.reason === 'pod_blocked' ? 'onBlockedPods' : 'unreachable'] += 1
      else if (lookup.newest.closedAt !== null) counts.closed += 1
      else if (isBlockedHere(lookup.newest)) counts.onBlockedPods += 1
      else counts[lookup.newest.id === lookup.person.id ? 'reachable' : 'moved'] += 1
      if (lookup.state === 'found' && lookup.newest.pod?.software === 'friendica') isFriendica = true
    }
  }
  return { counts, friendica: isFriendica }
}

async function findWarnings(
  { services, user, oldAddress }: ImportContext,
  state: IdentityState,
  {
    photos,
    hasZip,
    friendica,
  }: { readonly photos: PhotosReport; readonly hasZip: boolean; readonly friendica: boolean },
): Promise<readonly ArchiveWarning[]> {
  const home = splitAddress(oldAddress) && parseHomeUrl(oldAddress)
  const isBlocked = home !== undefined && (await RemotePod.isBlocked(services.db, parsePodHost(home)))
  const hasContacts = (await Contact.query(services.db).where({ userId: user.userId }).resultSize()) > 0
  const warnings: (ArchiveWarning | false)[] = [
    !hasZip && photos.named > 0 && 'no_photos_given',
    state === 'unproven' && 'identity_unproven',
    state !== 'same' && state !== 'moved_here' && hasContacts && 'new_account_has_contacts',
    friendica && 'friendica_contacts',
    isBlocked && 'old_pod_blocked',
  ]
  return warnings.filter((warning) => warning !== false)
}
