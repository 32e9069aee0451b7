import type { Knex } from 'knex'
import { queryPrepared } from '../database/database.js'

/** A pod to which a moved photo may lead. */
interface PodOfIdentity {
  readonly host: string
  readonly port: number
  readonly ssl: boolean
}

/** A photo whose author has moved away, with its file on this pod. */
export interface MovedPicture {
  /** The name of the original on this pod. */
  readonly file: string
  /** The name of the photo at its new place. */
  readonly name: string
  /** Null: the photo is on this pod again, under another name. */
  readonly remotePath: string | null
  /** The time for which this pod serves the file is over. */
  readonly isOver: boolean
  /** The pods of all identities of the author that are not blocked. */
  readonly pods: readonly PodOfIdentity[]
  /** The newest identity of the author, or its pod, is blocked. */
  readonly isBlocked: boolean
}

export interface PictureState {
  /** The file belongs to a photo that moderators have hidden. */
  readonly isHidden: boolean
  readonly moved: MovedPicture | undefined
}

/**
 * Reads whether a picture file is hidden or has moved. `names`: its own name, and the name of the original if it is another size. Reads
 * the indexes `photos_hidden_files` (hidden local photos only), `moved_photo_files_name` and `pruned_moved_photos_pkey`; most files are in
 * none of them.
 */
export async function findPictureState(
  db: Knex,
  names: readonly string[],
  movedFileDays: number,
): Promise<PictureState> {
  const rows = await queryPrepared<{ readonly isHidden: boolean; readonly moved: MovedPicture | null }>(
    db,
    'picture-state',
    PICTURE_STATE_SQL,
    [[...names], movedFileDays],
  )
  return {
    isHidden: rows.some(({ isHidden }) => isHidden),
    moved: rows.find(({ moved }) => moved !== null)?.moved ?? undefined,
  }
}

const PICTURE_STATE_SQL = `
  select true as "isHidden", null::json as moved
  from photos
  where name = any($1::text[]) and public_before_hiding is not null and remote_path is null
  union all
  select moved.hidden,
    json_build_object(
      'file', moved.file, 'name', moved.name, 'remotePath', moved.remote_path, 'isOver', moved.is_over,
      'isBlocked', author.restriction is not distinct from 'block' or pods.blocked_at is not null,
      'pods', array(
        with recursive identity(id) as (
          select author.id
          union
          select old_person_id from identity join account_migrations on new_person_id = identity.id
          where old_person_id is not null
        )
        select json_build_object('host', home.host, 'port', home.port, 'ssl', home.ssl)
        from identity join people on people.id = identity.id join pods as home on home.id = people.pod_id
        where home.blocked_at is null
      )
    )
  from (
    select moved_photo_files.name as file, photos.name, photos.remote_path, photos.author_id,
      photos.public_before_hiding is not null as hidden,
      deleted_at is not null or moved_at < now() - make_interval(days => $2::integer) as is_over
    from moved_photo_files join photos on photos.id = photo_id
    where moved_photo_files.name = any($1::text[]) and (photos.remote_path is not null or photos.name <> moved_photo_files.name)
    union all
    select name, new_name, remote_path, author_id, false, true from pruned_moved_photos where name = any($1::text[])
  ) as moved
  join people as author on author.id = moved.author_id
  left join pods on pods.id = author.pod_id`
