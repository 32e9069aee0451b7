import type { Migration } from './migration.js'

export const deliveries: Migration = {
  async up(db) {
    await db.raw(`
      alter table pods
        -- Successive deliveries that were answered with a redirect: the pod has probably moved.
        add column redirects smallint not null default 0 check (redirects >= 0),
        -- The process that delivers to the pod, and the end of its lease.
        add column drained_by uuid,
        add column drained_until timestamptz(3),
        add check ((drained_by is null) = (drained_until is null)),
        -- Each run of deliveries updates the row twice.
        set (fillfactor = 70);

      alter table outbound_messages
        -- The guid of the entity that this entity refers to, and that must be delivered before. Texts in the entity are escaped,
        -- so that no text can look like an element.
        add column about text collate "C" generated always as (
          substring(entity from '<(\\?:parent_guid|target_guid|conversation_guid|root_guid)>([^<]+)</')
        ) stored,
        -- The number of deliveries ever written; the rows of completed ones are deleted.
        add column sent_to integer not null default 0 check (sent_to >= 0);
      create index outbound_messages_guid on outbound_messages (guid);

      create function count_deliveries() returns trigger language plpgsql as $$
      begin
        update outbound_messages set sent_to = sent_to + added.count
        from (select message_id, count(*) from new_deliveries group by message_id) as added
        where outbound_messages.id = added.message_id;
        return null;
      end $$;
      create trigger count_deliveries after insert on deliveries
        referencing new table as new_deliveries for each statement execute function count_deliveries();

      -- An unreachable pod may have 100 000 waiting deliveries, so due ones are searched pod by pod.
      create index deliveries_due on deliveries (pod_id, due_at) where state = 'waiting';
      drop index deliveries_due_at;
    `)
  },

  async down(db) {
    await db.raw(`
      create index deliveries_due_at on deliveries (due_at) where state = 'waiting';
      drop index deliveries_due;
      drop trigger count_deliveries on deliveries;
      drop function count_deliveries;
      drop index outbound_messages_guid;
      alter table outbound_messages drop column about, drop column sent_to;
      alter table pods drop column redirects, drop column drained_by, drop column drained_until, reset (fillfactor);
    `)
  },
}
