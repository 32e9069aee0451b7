import type { Migration } from './migration.js'

export const clusterProgress: Migration = {
  async up(db) {
    await db.raw(`
      -- A cleaning and its undo work in the background: \`cleaning\` and \`restoring\`.
      alter table clusters
        drop constraint clusters_state_check,
        add constraint clusters_state_check check (state in ('open', 'cleaning', 'cleaned', 'restoring', 'dismissed')) not valid
    `)
  },

  async down(db) {
    await db.raw(`
      update clusters set state = case state when 'cleaning' then 'cleaned' else 'open' end where state in ('cleaning', 'restoring');
      alter table clusters
        drop constraint clusters_state_check,
        add constraint clusters_state_check check (state in ('open', 'cleaned', 'dismissed'))
    `)
  },
}
