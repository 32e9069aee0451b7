import type { Knex } from 'knex'
import type { Migration } from './migration.js'

/** Several locks, silences and blocks of one person are in force beside each other, each with its own end. */
export const severalLocks: Migration = {
  async up(db) {
    await replaceIndex(db, `kind not in ('filter.apply', 'lock', 'silence', 'block')`)
  },

  async down(db) {
    // The last one to end stays; the others restrict nobody any more, because nothing could end that.
    await db.raw(`
      with overtaken as (
        update moderation_actions set can_be_undone = false
        from (
          select id, row_number() over (partition by target_type, target_guid, kind order by until desc nulls first, id desc) as place
          from moderation_actions
          where kind in ('lock', 'silence', 'block') and can_be_undone and undone_by_id is null
        ) as ordered
        where ordered.id = moderation_actions.id and place > 1
        returning moderation_actions.id
      )
      delete from person_restrictions using overtaken
      where person_restrictions.source = 'action' and person_restrictions.source_id = overtaken.id
    `)
    await replaceIndex(db, `kind <> 'filter.apply'`)
  },
}

async function replaceIndex(db: Knex, condition: string): Promise<void> {
  await db.raw(`
    drop index moderation_actions_in_force;
    create unique index moderation_actions_in_force on moderation_actions (target_type, target_guid, kind)
      where can_be_undone and undone_by_id is null and ${condition};
  `)
}
