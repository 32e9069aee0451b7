import { randomBytes } from 'node:crypto'
import type { Knex } from 'knex'
import { Person } from '../../src/persistence/models/person.js'
import { Pod } from '../../src/persistence/models/pod.js'
import { Post } from '../../src/persistence/models/post.js'
import { User } from '../../src/persistence/models/user.js'

export function newGuid(): string {
  return randomBytes(16).toString('hex')
}

/** Adds a local user with their person. */
export async function addUser(db: Knex, username: string): Promise<User> {
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

/** Adds a person of another pod. */
export async function addRemotePerson(db: Knex, address: string): Promise<Person> {
  return db.transaction(async (transaction) => {
    const host = address.slice(address.indexOf('@') + 1)
    const pod = await Pod.query(transaction)
      .insert({ host })
      .onConflict(['host', 'port'])
      .merge(['host'])
      .returning('*')
    return Person.insertWithProfile(transaction, {
      guid: newGuid(),
      address,
      publicKey: `public key of ${address}`,
      podId: pod.id,
    })
  })
}

export async function addPost(db: Knex, authorId: number): Promise<Post> {
  return Post.query(db)
    .insert({ guid: newGuid(), authorId, type: 'StatusMessage', public: true, text: 'Good morning' })
    .returning('*')
}
