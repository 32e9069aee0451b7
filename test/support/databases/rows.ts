import type { Viewer } from '../../../src/domain/accounts/viewers.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { Participation } from '../../../src/persistence/models/participation.js'
import { Person } from '../../../src/persistence/models/person.js'
import { Post } from '../../../src/persistence/models/post.js'
import { User } from '../../../src/persistence/models/user.js'
import type { Services } from '../../../src/services/services.js'

/** Stores a local user without usable keys or password. For users who sign or sign in, see `people/local-users.ts`. */
export async function addUserRow({ db }: Pick<Services, 'db'>, username: string): Promise<User> {
  return db.transaction(async (transaction) => {
    const person = await Person.insertWithProfile(transaction, {
      guid: newGuid(),
      address: `${username}@pod.example`,
      publicKey: `public key of ${username}`,
    })
    const user = await User.query(transaction).insert({ username, personId: person.id }).returning('*')
    await user
      .$relatedQuery('secrets', transaction)
      .insert({ passwordHash: 'hash', sealedPrivateKey: Buffer.from('sealed') })
    user.person = person
    return user
  })
}

/** Stores a public post with a text. */
export async function addPost(
  { db }: Pick<Services, 'db'>,
  author: Pick<Person, 'id'>,
  fields: Partial<Post> = {},
): Promise<Post> {
  return Post.query(db)
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

/** Makes a private post visible to a local user. */
export async function showPost(
  { db }: Pick<Services, 'db'>,
  post: Post,
  { userId }: Pick<Viewer, 'userId'>,
): Promise<void> {
  const { id: postId, authorId, createdAt } = post
  await db('postVisibilities').insert({ userId, postId, authorId, createdAt })
}

/** The author and the number of reasons of each participation in a post, in the order of the authors. */
export function participationsOf(
  { db }: Pick<Services, 'db'>,
  { id: postId }: Pick<Post, 'id'>,
): Promise<readonly Pick<Participation, 'authorId' | 'count'>[]> {
  return Participation.query(db).where({ postId }).orderBy('authorId').select('authorId', 'count').execute()
}

export function countRows({ db }: Pick<Services, 'db'>, tables: readonly string[]): Promise<readonly number[]> {
  return Promise.all(
    tables.map(async (table) => {
      const [{ count } = { count: 0 }] = await db(table).count<{ count: number }[]>()
      return Number(count)
    }),
  )
}

/** A finished import of an account. */
export async function addImport(
  { db }: Pick<Services, 'db'>,
  { uid, userId }: { readonly uid: string; readonly userId: number },
): Promise<void> {
  const posts = { found: 3, imported: 2, skipped: 0, refused: 1, by_reason: { schema: 1 } }
  await db('imports').insert({
    uid,
    userId,
    state: 'done',
    oldAddress: 'alice@old.example',
    identity: 'proven',
    options: JSON.stringify({ content: true, move: true, settings: true, profile: true }),
    header: '{}',
    bytes: 1,
    sha256: '0'.repeat(64),
    phase: 'announce',
    counts: JSON.stringify({ posts }),
    createdAt: new Date('2026-01-02T03:04:05Z'),
    finishedAt: new Date('2026-01-02T03:05:05Z'),
  })
}
