import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'

/**
 * Deletes e-mail address, password and second factors of local accounts that moved more than this number of days ago. Returns how many
 * accounts had any.
 */
export async function deleteMovedCredentials(db: Knex, days: number): Promise<number> {
  return (await queryRows(db, DELETE_MOVED_CREDENTIALS_SQL, { days })).length
}

const DELETE_MOVED_CREDENTIALS_SQL = `
  with moved as (
    select users.id from users join account_migrations on old_person_id = users.person_id
    where account_migrations.created_at < now() - make_interval(days => :days)
      and (users.email is not null or exists (
        select from user_secrets where user_id = users.id and (password_hash is not null or sealed_totp_secret is not null)
      ))
    order by users.id for update of users
  ), secrets as (
    update user_secrets set password_hash = null, sealed_totp_secret = null, totp_confirmed_at = null, totp_last_step = null
    from moved where user_id = moved.id
  ), codes as (
    delete from recovery_codes using moved where user_id = moved.id
  ), keys as (
    delete from passkeys using moved where user_id = moved.id
  ), steps as (
    delete from second_steps using moved where user_id = moved.id
  ), browsers as (
    delete from browser_sessions using moved where user_id = moved.id
  )
  update users set email = null, email_confirmed_at = null from moved where users.id = moved.id
  returning users.id`
