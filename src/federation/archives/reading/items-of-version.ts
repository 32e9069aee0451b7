import { itemOfVersion1 } from '../../../protocol/archives/version-1.js'
import type { ArchiveVersion } from './archive-owner.js'
import type { SpooledItem, SpooledList } from './spool-archive.js'

/** The items in the form of version 2.0. */
export function readItems(
  { version, oldAddress }: { readonly version: ArchiveVersion; readonly oldAddress: string },
  list: SpooledList,
  items: readonly SpooledItem[],
): readonly SpooledItem[] {
  if (version === '2.0') return items
  return items.map(({ position, value }) => ({ position, value: itemOfVersion1(list, value, oldAddress) }))
}
