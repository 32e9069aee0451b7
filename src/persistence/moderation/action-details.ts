import type { PermanentTombstone } from '../models/tombstone.js'
import type { ClosingBy } from '../models/user.js'
import type { ActionRow } from './actions.js'
import type { ClusterPosition } from './clusters.js'
import type { ContentCursor } from './public-content-of-person.js'

/** Details of actions by kind, for their undo and for work that continues in the background. */
export interface ActionDetails {
  readonly remove: RemovalDetails
  readonly hide_content: PersonContentDetails
  readonly remove_content: PersonContentDetails
  readonly close: ClosingDetails
  readonly lock: LockDetails
  readonly 'cluster.clean': CleaningDetails
}

interface RemovalDetails {
  readonly tombstones: readonly PermanentTombstone[]
  readonly caseId: number | null
}

interface PersonContentDetails {
  readonly userId: number | null
  readonly personId: number
  /** Where the operation continues. */
  readonly place?: ContentCursor
  readonly tombstones: readonly PermanentTombstone[]
}

interface ClosingDetails {
  readonly userId: number
  /** The closing that the owner had begun. */
  readonly before: BegunClosing | null
}

interface LockDetails {
  readonly userId: number
  /** The account was already locked without an action, and stays so after the undo. Not in locks of older versions. */
  readonly wasLocked?: boolean
}

export interface BegunClosing {
  readonly closeAt: string
  readonly closingBy: ClosingBy
  readonly closingRetracts: boolean
}

/** The chosen parts, the position where the work continues, and the data for the undo. */
export interface CleaningDetails {
  readonly hide: boolean
  readonly authors: 'none' | 'silence' | 'block' | 'lock'
  /** Guids of items, and of people whose items stay. */
  readonly except: readonly string[]
  readonly authorIds: readonly number[]
  /** Removed content in the order of guids, in which all transactions lock it. */
  readonly removed: readonly { readonly type: 'post' | 'comment'; readonly guid: string }[]
  /** The users whose accounts the cleaning locks, also beside another lock. */
  readonly lockedIds: readonly number[]
  readonly place: CleaningCursor
  readonly filterId: number | null
  readonly ruleIds: readonly number[]
}

/** Authors are restricted first, so that they add nothing while the rest is done. */
export type CleaningCursor =
  | { readonly step: 'authors'; readonly after: number }
  | { readonly step: 'remove'; readonly after: number }
  | { readonly step: 'hide'; readonly after: ClusterPosition | null }
  | { readonly step: 'done' }

/** Reads the details of an action of this kind. Only the action of the kind has written them, so they are not checked again. */
export function readActionDetails<Kind extends keyof ActionDetails>(
  { details }: Pick<ActionRow, 'details'>,
  _kind: Kind,
): ActionDetails[Kind] {
  return details as unknown as ActionDetails[Kind]
}
