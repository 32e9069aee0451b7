/**
 * Stores the data of jobs uncompressed. Compression is most of the cost of adding a job, and saves nothing: base64 does not get
 * smaller. Altering a table waits for its readers, so the column is left alone once it is right.
 */
export const STORE_DATA_UNCOMPRESSED_SQL = `
  do $$ begin
    if exists (
      select from pg_attribute where attrelid = 'bullmq.job'::regclass and attname = 'data' and attstorage <> 'e'
    ) then
      alter table bullmq.job alter column data set storage external;
    end if;
  end $$`
