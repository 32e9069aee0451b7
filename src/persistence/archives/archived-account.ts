import type { Knex } from 'knex'
import { queryRow, queryRows } from '../database/database.js'
import { pagesAfter } from '../sql/pages-after.js'

/** A contact of a user with the names of the aspects, in their order. */
export interface ArchivedContact {
  readonly id: number
  readonly address: string
  readonly guid: string
  readonly name: string
  readonly publicKey: string
  readonly sharing: boolean
  readonly receiving: boolean
  readonly aspects: readonly string[]
}

/** The contacts page by page, in the order of their ids. */
export function archivedContacts(db: Knex, userId: number, limit: number): AsyncGenerator<readonly ArchivedContact[]> {
  return pagesAfter({
    size: limit,
    start: 0,
    positionOf: ({ id }: ArchivedContact) => id,
    async read(after) {
      return queryRows<ArchivedContact>(
        db,
        `select contacts.id, people.address, people.guid, people.name, people.public_key as "publicKey",
           contacts.sharing, contacts.receiving,
           array(select aspects.name from aspect_memberships
                 join aspects on aspects.id = aspect_memberships.aspect_id
                 where aspect_memberships.contact_id = contacts.id order by aspects.position, aspects.id) as aspects
         from contacts join people on people.id = contacts.person_id
         where contacts.user_id = ? and contacts.id > ?
         order by contacts.id limit ?`,
        [userId, after, limit],
      )
    },
  })
}

/** Lists that are short enough to be read at once. */
export interface ArchivedLists {
  readonly blocks: readonly string[]
  readonly followedTags: readonly string[]
  readonly hiddenPosts: readonly string[]
  readonly mutedPosts: readonly string[]
}

export async function findArchivedLists(db: Knex, userId: number): Promise<ArchivedLists> {
  return queryRow<ArchivedLists>(
    db,
    `select
       array(select people.address from blocks join people on people.id = blocks.person_id
             where blocks.user_id = users.id order by people.address) as blocks,
       array(select tags.name from tag_followings join tags on tags.id = tag_followings.tag_id
             where tag_followings.user_id = users.id order by tags.name) as "followedTags",
       array(select posts.guid from hidden_posts join posts on posts.id = hidden_posts.post_id
             where hidden_posts.user_id = users.id order by posts.id) as "hiddenPosts",
       array(select posts.guid from muted_posts join posts on posts.id = muted_posts.post_id
             where muted_posts.user_id = users.id order by posts.id) as "mutedPosts"
     from users where id = ?`,
    [userId],
  )
}

/** A pod to which public posts of the user are sent. */
export interface ArchivedPod {
  readonly host: string
  readonly port: number
  readonly ssl: boolean
}

/** Pods of people who share with the user: they receive every public post. */
export async function findFollowerPods(db: Knex, userId: number): Promise<readonly ArchivedPod[]> {
  return queryRows<ArchivedPod>(
    db,
    `select distinct pods.host, pods.port, pods.ssl
     from contacts join people on people.id = contacts.person_id join pods on pods.id = people.pod_id
     where contacts.user_id = ? and contacts.sharing
     order by pods.host, pods.port`,
    [userId],
  )
}
