import type { Migration } from './migration.js'

export const hiddenActors: Migration = {
  async up(db) {
    await db.raw(`
      -- What the actor did is hidden by moderators; others are named in the notification.
      alter table notification_actors add column hidden boolean not null default false
    `)
  },

  async down(db) {
    await db.raw('alter table notification_actors drop column hidden')
  },
}
