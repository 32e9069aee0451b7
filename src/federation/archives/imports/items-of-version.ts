import { itemOfVersion1 } from '../../../protocol/archives/version-1.js'
import type { SpooledItem, SpooledList } from '../reading/spool-archive.js'
import type { ImportContext } from './import-context.js'

/** The items in the form of version 2.0. */
export function itemsOf(
  { version, oldAddress }: Pick<ImportContext, 'version' | 'oldAddress'>,
  list: SpooledList,
  items: readonly SpooledItem[],
): readonly SpooledItem[] {
  if (version === '2.0') return items
  return items.map(({ position, value }) => ({ position, value: itemOfVersion1(list, value, oldAddress) }))
}
