import type { Knex } from 'knex'
import { queryRows } from '../database/database.js'

/** A remote person whose profile was received, with their pod. */
export interface ProfileOwner {
  readonly id: number
  readonly address: string
  readonly host: string
  readonly port: number
  readonly ssl: boolean
}

/** A received profile. Missing elements are null or empty. */
export interface ReceivedProfile {
  readonly personId: number
  readonly firstName: string | null
  readonly lastName: string | null
  readonly imageUrl: string | null
  readonly imageUrlMedium: string | null
  readonly imageUrlSmall: string | null
  readonly bio: string
  readonly location: string
  readonly gender: string | null
  readonly birthday: string | null
  readonly searchable: boolean
  readonly publicDetails: boolean
  readonly nsfw: boolean
  readonly tags: readonly string[]
  readonly editedAt: Date | undefined
  readonly acceptedAt: Date
}

/** Locks the rows of remote people with open accounts in id order. */
export async function lockProfileOwners(
  transaction: Knex.Transaction,
  addresses: readonly string[],
): Promise<readonly ProfileOwner[]> {
  return queryRows<ProfileOwner>(transaction, OWNERS_SQL, [[...addresses]])
}

/**
 * Replaces profiles, one for each person, unless the stored one is newer. Returns the ids of changed people. The caller has locked
 * the rows of the people.
 */
export async function replaceProfiles(
  transaction: Knex.Transaction,
  profiles: readonly ReceivedProfile[],
): Promise<readonly number[]> {
  if (profiles.length === 0) return []
  const rows = await queryRows<{ readonly id: number }>(transaction, REPLACED_PROFILES_SQL, [JSON.stringify(profiles)])
  return rows.map(({ id }) => id)
}

const OWNERS_SQL = `
  select people.id, people.address, pods.host, pods.port, pods.ssl
  from people join pods on pods.id = people.pod_id
  where people.address = any(?) and people.closed_at is null
  order by people.id
  for no key update of people`

/** Compares edit times first. Of two profiles edited in the same second, the later arrival wins. */
const REPLACED_PROFILES_SQL = `
  with changed as (
    update profiles set
      first_name = input."firstName", last_name = input."lastName", image_url = input."imageUrl",
      image_url_medium = input."imageUrlMedium", image_url_small = input."imageUrlSmall", bio = input.bio,
      location = input.location, gender = input.gender, birthday = input.birthday,
      searchable = input.searchable, public_details = input."publicDetails", nsfw = input.nsfw,
      tags = input.tags, edited_at = input."editedAt", accepted_at = input."acceptedAt",
      updated_at = input."acceptedAt"
    from json_to_recordset(?::json) as input(
      "personId" bigint, "firstName" text, "lastName" text, "imageUrl" text, "imageUrlMedium" text, "imageUrlSmall" text,
      bio text, location text, gender text, birthday text, searchable boolean, "publicDetails" boolean, nsfw boolean,
      tags text[], "editedAt" timestamptz, "acceptedAt" timestamptz
    )
    where profiles.person_id = input."personId" and (
      profiles.accepted_at is null
      or (coalesce(profiles.edited_at, profiles.accepted_at), profiles.accepted_at)
        < (coalesce(input."editedAt", input."acceptedAt"), input."acceptedAt")
    )
    returning profiles.*
  )
  update people set
    name = trim(concat_ws(' ', changed.first_name, changed.last_name)),
    avatar_url = coalesce(changed.image_url_medium, changed.image_url)
  from changed
  where people.id = changed.person_id
  returning people.id`
