import { type Migration, now } from './migration.js'

/** The last ten errors of each pod. A trigger stores them, because deliveries and checks set `pods.last_error` in several statements. */
export const podErrors: Migration = {
  async up(db) {
    await db.raw(`
      create table pod_errors (
        id bigint generated always as identity primary key,
        pod_id bigint not null references pods on delete cascade,
        at timestamptz(3) not null default ${now},
        status text not null,
        error text not null
      );
      create index pod_errors_pod_id on pod_errors (pod_id, id);

      create function keep_pod_error() returns trigger language plpgsql as $$
      begin
        insert into pod_errors (pod_id, status, error) values (new.id, new.status, left(new.last_error, 500));
        delete from pod_errors where pod_id = new.id and id <= (
          select id from pod_errors where pod_id = new.id order by id desc offset 10 limit 1
        );
        return null;
      end
      $$;
      -- Rounds of deliveries also set the column to its stored value: without a new failure or check, that is not another error.
      create trigger pods_keep_error after update of last_error on pods for each row
        when (
          new.last_error is not null
          and (
            new.last_error is distinct from old.last_error or new.failures > old.failures
            or new.checked_at is distinct from old.checked_at
          )
        )
        execute function keep_pod_error();
    `)
  },

  async down(db) {
    await db.raw(`
      drop trigger pods_keep_error on pods;
      drop function keep_pod_error();
      drop table pod_errors;
    `)
  },
}
