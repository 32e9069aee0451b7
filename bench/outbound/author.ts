import type { KeyObject } from 'node:crypto'
import { createUser } from '../../src/domain/accounts/accounts.js'
import type { OutgoingRecord } from '../../src/jobs/definitions.js'
import type { Services } from '../../src/services/services.js'

export interface Author {
  readonly userId: number
  readonly personId: number
  readonly aspectId: number
}

export interface Audience {
  /** Username of the author. */
  readonly author: string
  readonly peopleOnEachPod: number
  /** Length of the readers' keys. */
  readonly bits: number
}

/** Creates a user with readers on each pod. All readers have the same key, which does not change the cost of encryption. */
export async function addAuthor(
  services: Services,
  { author, peopleOnEachPod, bits }: Audience,
  ports: readonly number[],
  publicKey: KeyObject,
): Promise<Author> {
  await createUser(services, { username: author, password: `the password of ${author}` })
  const user = await services.db('users').where({ username: author }).first('id', 'personId')
  const { rows } = await services.db.raw(
    `with others as (
       insert into pods (host, port, last_success_at) select '127.0.0.1', unnest(cast(:ports as integer[])), now()
       on conflict (host, port) do update set last_success_at = now()
       returning id, port
     ), readers as (
       insert into people (guid, address, pod_id, public_key)
       select md5(:author || port || n), :author || n || '@127.0.0.1:' || port, others.id, :key
       from others, generate_series(1, cast(:count as integer)) as n
       returning id
     ), aspect as (
       insert into aspects (user_id, name, position) values (:userId, 'Readers', 1) returning id
     ), contact as (
       insert into contacts (user_id, person_id, receiving) select :userId, id, true from readers returning id
     ), membership as (
       insert into aspect_memberships (aspect_id, contact_id) select aspect.id, contact.id from aspect, contact
     )
     select id from aspect`,
    {
      author: `${author}${bits}-`,
      ports: [...ports],
      key: publicKey.export({ type: 'spki', format: 'pem' }).toString(),
      count: peopleOnEachPod,
      userId: user.id,
    },
  )
  return { userId: user.id, personId: user.personId, aspectId: rows[0].id }
}

export async function addPosts(
  services: Services,
  author: Pick<Author, 'personId' | 'aspectId'>,
  kind: { readonly public: boolean; readonly posts: number },
): Promise<readonly OutgoingRecord[]> {
  const { rows } = await services.db.raw(
    `with posts as (
       insert into posts (guid, author_id, type, public, text)
       select md5(random()::text), ?, 'StatusMessage', ?, repeat('Good morning. ', 40) from generate_series(1, ?)
       returning id, guid
     ), shared as (
       insert into post_aspects (post_id, aspect_id) select id, ? from posts
     )
     select guid from posts`,
    [author.personId, kind.public, kind.posts, author.aspectId],
  )
  return rows.map(({ guid }: { guid: string }) => ({ record: 'post', guid }))
}
