import type { Knex } from 'knex'
import type { Migration } from './migration.js'

/** A filter is applied to stored content more than once: each application is an action with an undo of its own. */
export const repeatedFilters: Migration = {
  async up(db) {
    await replaceIndex(db, `can_be_undone and undone_by_id is null and kind <> 'filter.apply'`)
  },

  async down(db) {
    await db.raw(`
      update moderation_actions set can_be_undone = false
      where kind = 'filter.apply' and can_be_undone and undone_by_id is null and id not in (
        select max(id) from moderation_actions where kind = 'filter.apply' and can_be_undone and undone_by_id is null group by target_guid
      )
    `)
    await replaceIndex(db, 'can_be_undone and undone_by_id is null')
  },
}

async function replaceIndex(db: Knex, condition: string): Promise<void> {
  await db.raw(`
    drop index moderation_actions_in_force;
    create unique index moderation_actions_in_force on moderation_actions (target_type, target_guid, kind) where ${condition};
  `)
}
