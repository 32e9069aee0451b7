import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Person } from '../../src/persistence/models/person.js'
import { listPublicPosts } from '../../src/persistence/posts/public-posts.js'
import { countQueries } from '../support/assertions/statement-count.js'
import { addPost } from '../support/databases/rows.js'
import { addRemotePerson } from '../support/people/remote-people.js'
import { buildPod, type TestPod } from '../support/pods/build-pod.js'

describe('the public posts of a person', () => {
  let test: TestPod
  let author: Person
  beforeAll(async () => {
    test = await buildPod()
    author = await addRemotePerson(test.pod, 'rosa@roots.example')
  })
  afterAll(() => test.close())

  const reshareOf = (person: Person, rootId: number) => addPost(test.pod, person, { type: 'Reshare', text: '', rootId })
  const list = (person: Person) => listPublicPosts(test.pod.db, person.id)

  it('have the roots of reshares, also of reshares of reshares, but not private ones', async () => {
    const sharer = await addRemotePerson(test.pod, 'sam@shares.example')
    const root = await addPost(test.pod, author)
    const first = await reshareOf(sharer, root.id)
    await reshareOf(sharer, first.id)
    await reshareOf(sharer, (await addPost(test.pod, author, { public: false })).id)
    await addPost(test.pod, sharer)

    const roots = (await list(sharer)).map((post) => post.root?.post.id)

    expect(roots.toSorted()).toEqual([root.id, root.id, undefined, undefined])
  })

  it('are read with the same number of statements for one reshare and for many', async () => {
    const [few, many] = [
      await addRemotePerson(test.pod, 'few@shares.example'),
      await addRemotePerson(test.pod, 'many@shares.example'),
    ]
    await reshareOf(few, (await addPost(test.pod, author)).id)
    for (let round = 0; round < 5; round += 1) await reshareOf(many, (await addPost(test.pod, author)).id)

    expect(await countQueries(test.pod, () => list(many))).toBe(await countQueries(test.pod, () => list(few)))
  })
})
