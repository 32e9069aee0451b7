import type { Knex } from 'knex'
import type { ItemOutcome } from '../../../persistence/archives/imports.js'
import type { SpooledItem, SpooledList } from '../reading/spool-archive.js'
import { aspectImporter } from './import-aspects.js'
import { blockImporter, contactImporter } from './import-contacts.js'
import type { ImportContext, ListImporter, ReadyItem } from './import-context.js'
import { conversationImporter } from './import-conversations.js'
import { subscriptionImporter, tagImporter } from './import-lists.js'
import { othersRelayableImporter } from './import-others-relayables.js'
import { ownRelayableImporter } from './import-own-relayables.js'
import { postImporter } from './import-posts.js'

/** A batch about which everything is decided but what the transaction shows. */
interface PreparedBatch {
  readonly outcomes: readonly ItemOutcome[]
  /** Items that can be stored; a check counts them as imported. */
  readonly ready: readonly ReadyItem[]
  store(transaction: Knex.Transaction): Promise<readonly ItemOutcome[]>
}

/** Imports a list batch by batch. */
export interface BatchImporter {
  readonly section: ItemOutcome['section']
  readonly list: SpooledList
  prepare(context: ImportContext, items: readonly SpooledItem[]): Promise<PreparedBatch>
}

/** Lists that every import reads, in this order. */
export const RELATION_IMPORTERS: readonly BatchImporter[] = [
  inBatches(aspectImporter),
  inBatches(contactImporter),
  inBatches(tagImporter),
  inBatches(blockImporter),
]

/** Lists that need the identity of the old account. Likes come after all comments, because they may belong to any of them. */
export const CONTENT_IMPORTERS: readonly BatchImporter[] = [
  inBatches(postImporter),
  inBatches(ownRelayableImporter('own_comments')),
  inBatches(othersRelayableImporter('others_comments')),
  inBatches(ownRelayableImporter('own_reactions')),
  inBatches(othersRelayableImporter('others_reactions')),
  inBatches(subscriptionImporter),
]

/** Lists that belong to the owner alone: only the key proves who that is. */
export const PRIVATE_IMPORTERS: readonly BatchImporter[] = [inBatches(conversationImporter)]

function inBatches<Ready extends ReadyItem>(importer: ListImporter<Ready>): BatchImporter {
  const { section, list } = importer
  return {
    section,
    list,
    async prepare(context, items) {
      const { outcomes, ready } = await importer.prepare(context, items)
      return { outcomes, ready, store: (transaction) => importer.store(context, transaction, ready) }
    },
  }
}
