import type { Knex } from 'knex'
import type { Reader } from '../../../persistence/archives/imported-content.js'
import type { ImportSection, ItemOutcome } from '../../../persistence/archives/imports.js'
import type { Services } from '../../../services/services.js'
import type { Fetches } from '../lookups/fetches.js'
import type { PeopleFinder } from '../lookups/people-finder.js'
import type { ImportingUser } from '../owner.js'
import type { ArchiveVersion } from '../reading/archive-owner.js'
import type { SpooledItem, SpooledList } from '../reading/spool-archive.js'
import type { DistinctAspectNames } from './aspect-names.js'

/** Creates the files of a picture by the prefixes of their sizes. Throws a `Refusal` if the file is not a picture. */
export type MakePicture = (bytes: Buffer) => Promise<{ readonly files: ReadonlyMap<string, Buffer> }>

export interface ImportContext {
  readonly services: Services
  readonly user: ImportingUser
  readonly version: ArchiveVersion
  /** The network ID of the archive. */
  readonly oldAddress: string
  /** The person of the old account; undefined: this pod does not know them. */
  readonly oldPersonId: number | undefined
  /** Network IDs before the old one, from which the owner has moved to this account. */
  readonly earlierAddresses?: ReadonlySet<string>
  readonly aspectNames: DistinctAspectNames
  readonly people: PeopleFinder
  /** Undefined in a check, which fetches no posts. */
  readonly fetches: Fetches | undefined
  /** Undefined in a check, which changes nothing. */
  readonly importId: number | undefined
  /** Guids that a check has read: later items may belong to them. */
  readonly planned:
    | { readonly posts: Set<string>; readonly comments: Set<string>; readonly polls: Set<string> }
    | undefined
  readonly signal: AbortSignal
}

/** For the posts that the owner may read here. */
export function readerOf({ user, oldPersonId }: Pick<ImportContext, 'user' | 'oldPersonId'>): Reader {
  return { userId: user.userId, personIds: oldPersonId === undefined ? [user.personId] : [user.personId, oldPersonId] }
}

export type ImportRejectionReason =
  | 'schema'
  | 'foreign_author'
  | 'guid_taken'
  | 'deleted_before'
  | 'too_long'
  | 'empty'
  | 'parent_missing'
  | 'root_missing'
  | 'author_unknown'
  | 'signature_missing'
  | 'signature_wrong'
  | 'local_author'
  | 'blocked'
  | 'pod_blocked'
  | 'not_found'
  | 'closed'
  | 'self'
  | 'duplicate'
  | 'photo_file_missing'
  | 'photo_unusable'
  | 'over_limit'
  | 'over_quota'

/** An item that can be imported. */
export interface ReadyItem {
  readonly position: number
  readonly ref: string
}

/** The decision about each item of a batch, before anything is stored. */
interface PreparedItems<Ready extends ReadyItem> {
  readonly ready: readonly Ready[]
  readonly outcomes: readonly ItemOutcome[]
}

/** Imports one list of an archive. */
export interface ListImporter<Ready extends ReadyItem> {
  readonly section: ImportSection
  readonly list: SpooledList
  /** Decides about each item. Looks up people and fetches posts, and changes nothing else. */
  prepare(context: ImportContext, items: readonly SpooledItem[]): Promise<PreparedItems<Ready>>
  store(context: ImportContext, transaction: Knex.Transaction, ready: readonly Ready[]): Promise<readonly ItemOutcome[]>
}

/** Collects the outcomes of a batch. */
export class BatchResults<Ready extends ReadyItem> implements PreparedItems<Ready> {
  readonly ready: Ready[] = []
  readonly outcomes: ItemOutcome[] = []
  readonly #section: ImportSection

  constructor(section: ImportSection) {
    this.#section = section
  }

  accept(ready: Ready): void {
    this.ready.push(ready)
  }

  refuse(item: ReadyItem, reason: ImportRejectionReason): void {
    this.#add(item, 'refused', reason)
  }

  recordPresent(item: ReadyItem): void {
    this.#add(item, 'already_there', null)
  }

  recordImported(item: ReadyItem): void {
    this.#add(item, 'imported', null)
  }

  #add({ position, ref }: ReadyItem, outcome: ItemOutcome['outcome'], reason: ImportRejectionReason | null): void {
    this.outcomes.push({ section: this.#section, position, ref: ref.slice(0, 255), outcome, reason })
  }
}

/** The text form of an item for the list of outcomes, when it has no guid, name or network ID. */
export const NO_REF = '(unreadable)'
