import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { findViewer, type Viewer } from '../../../src/domain/accounts/viewers.js'
import { Person, type Profile } from '../../../src/persistence/models/person.js'
import { Pod as PodModel } from '../../../src/persistence/models/pod.js'
import { Post } from '../../../src/persistence/models/post.js'
import type { Pod } from '../../../src/pod/pod.js'
import type { TestPerson } from './local-users.js'

export function newGuid(): string {
  return randomBytes(16).toString('hex')
}

/** The person behind a client, as use cases know them. */
export async function viewerOf(pod: Pod, person: TestPerson): Promise<Viewer> {
  const viewer = await findViewer(pod, person.token)
  if (viewer === undefined) throw new Error(`The token of ${person.account.username} does not count.`)
  return viewer
}

export interface RemotePersonFields {
  readonly guid?: string
  readonly publicKey?: string
  readonly profile?: Partial<Pick<Profile, 'firstName' | 'lastName'>>
  readonly pod?: Partial<Pick<PodModel, 'port' | 'ssl'>>
}

/** A known person on another pod. */
export async function addRemotePerson(pod: Pod, address: string, facts: RemotePersonFields = {}): Promise<Person> {
  return pod.db.transaction(async (transaction) => {
    const [, host = ''] = address.split('@')
    const home = await PodModel.query(transaction)
      .insert({ host, ssl: true, ...facts.pod })
      .onConflict(['host', 'port'])
      .merge(['host'])
      .returning('*')
    return Person.insertWithProfile(
      transaction,
      {
        guid: facts.guid ?? newGuid(),
        address,
        publicKey: facts.publicKey ?? readKey('4.public.pem'),
        podId: home.id,
      },
      facts.profile,
    )
  })
}

export async function addPost(pod: Pod, author: Pick<Person, 'id'>, fields: Partial<Post> = {}): Promise<Post> {
  return Post.query(pod.db)
    .insert({
      guid: newGuid(),
      authorId: author.id,
      type: 'StatusMessage',
      public: true,
      text: 'Good morning',
      ...fields,
    })
    .returning('*')
}

/** A private message, delivered to a local user. */
export async function showPost(pod: Pick<Pod, 'db'>, post: Post, { userId }: Pick<Viewer, 'userId'>): Promise<void> {
  const { id: postId, authorId, createdAt } = post
  await pod.db('postVisibilities').insert({ userId, postId, authorId, createdAt })
}

/** One of the keys that canned people have. */
export function readKey(file: string): string {
  return readFileSync(new URL(`../../fixtures/keys/${file}`, import.meta.url), 'utf8')
}

export function countRows({ db }: Pick<Pod, 'db'>, tables: readonly string[]): Promise<readonly number[]> {
  return Promise.all(
    tables.map(async (table) => {
      const [{ count } = { count: 0 }] = await db(table).count<{ count: number }[]>()
      return Number(count)
    }),
  )
}
