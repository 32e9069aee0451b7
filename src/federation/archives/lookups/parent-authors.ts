import { parseAddress } from '../../../protocol/address.js'
import { isGuid } from '../../../protocol/values.js'
import { IMPORT_LIMITS } from '../limits.js'
import { readMembers } from '../reading/archive-owner.js'
import { spooledBatches } from '../reading/spool-archive.js'

/**
 * The authors of posts of others that an archive contains, by the guids of the posts and of their polls. Only archives of diaspora* 0.7.0
 * contain them. They say where a post can be fetched, and nothing else is read of them.
 */
export async function readParentAuthors(folder: string): Promise<ReadonlyMap<string, string>> {
  const authors = new Map<string, string>()
  for await (const { items } of spooledBatches(folder, 'others_posts')) {
    for (const { value } of items) {
      const { author, guid, poll } = readMembers(readMembers(value)?.['entity_data']) ?? {}
      const address = typeof author === 'string' ? parseAddress(author) : undefined
      if (address === undefined) continue
      const pollGuid = readMembers(readMembers(poll)?.['entity_data'])?.['guid']
      for (const each of [guid, pollGuid]) if (typeof each === 'string' && isGuid(each)) authors.set(each, address)
      if (authors.size >= IMPORT_LIMITS.posts) return authors
    }
  }
  return authors
}
