import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { closeUser } from '../../src/domain/accounts/closing/close-now.js'
import { newGuid } from '../../src/domain/new-guid.js'
import { writeEntity } from '../../src/protocol/entities/entity-xml.js'
import { countQueries } from '../support/assertions/statement-count.js'
import { addPost } from '../support/databases/rows.js'
import { dispatchNow, sentAbout } from '../support/federation/outbound-messages.js'
import { addAspect } from '../support/people/aspects.js'
import { addLocalUser } from '../support/people/local-users.js'
import { addRemotePerson } from '../support/people/remote-people.js'
import { type FederationPod, openFederationPod } from '../support/pods/federation-pod.js'

describe('closing an account', () => {
  let pod: FederationPod
  beforeAll(async () => {
    pod = await openFederationPod()
  })
  afterAll(() => pod.close())

  it('is sent to all pods with data of the account, and deletes its content', async () => {
    const ann = await addLocalUser(pod, 'ann')
    const ben = await addLocalUser(pod, 'ben')
    const quin = await addRemotePerson(pod, 'quin@q.example')
    const second = await addRemotePerson(pod, 'quincy@q.example')
    const sharer = await addRemotePerson(pod, 'sam@s.example')
    const resharer = await addRemotePerson(pod, 'remy@r.example')
    await addRemotePerson(pod, 'tess@t.example')
    await addAspect(pod, ann.userId, [quin, second])
    await pod.db('contacts').insert([
      { userId: ann.userId, personId: sharer.id, sharing: true },
      { userId: ben.userId, personId: ann.id, sharing: true },
    ])
    const mine = await addPost(pod, ann)
    const theirs = await addPost(pod, ben, { commentsCount: 1 })
    await addPost(pod, resharer, { type: 'Reshare', text: '', rootId: mine.id })
    await pod.db('comments').insert({ guid: newGuid(), authorId: ann.id, postId: theirs.id, text: 'Hello' })
    await pod.db('blocks').insert({ userId: ann.userId, personId: sharer.id })

    await closeUser(pod, 'ann')

    expect(await sentAbout(pod, ann.guid)).toEqual([
      {
        verb: 'create',
        public: true,
        entity: writeEntity({ type: 'account_deletion', author: ann.address }),
        senderId: ann.id,
        to: ['q.example', 'r.example', 's.example'],
      },
    ])
    expect(await pod.rows('contacts', 'blocks', 'comments')).toEqual([0, 0, 1])
    expect(await pod.db('posts').orderBy('id').select('authorId', 'rootId', 'commentsCount')).toEqual([
      { authorId: ben.id, rootId: null, commentsCount: 1 },
      { authorId: resharer.id, rootId: null, commentsCount: 0 },
    ])
    expect(await pod.db('aspects').where({ userId: ann.userId })).toEqual([])
    expect(await pod.db('userSecrets').where({ userId: ann.userId }).first()).toMatchObject({
      passwordHash: null,
      // The account deletion is signed with it.
      sealedPrivateKey: expect.any(Buffer),
    })
  })

  it('cancels undelivered messages, and leaves content of other people', async () => {
    const tess = await addLocalUser(pod, 'tess')
    const uma = await addRemotePerson(pod, 'uma@u.example')
    await addAspect(pod, tess.userId, [uma])
    const mine = await addPost(pod, tess)
    const theirs = await addPost(pod, uma)
    const [comment, photo] = [newGuid(), newGuid()]
    await pod.db('comments').insert({ guid: comment, authorId: tess.id, postId: theirs.id, text: 'Hello' })
    await pod.db('photos').insert({ guid: photo, authorId: tess.id, name: 'tea.jpg', pending: false, public: true })
    const records = [
      { record: 'post', guid: mine.guid },
      { record: 'comment', guid: comment },
      { record: 'photo', guid: photo },
      { record: 'profile', personId: tess.id },
    ] as const
    for (const record of records) await dispatchNow(pod, record)
    const waiting = () => pod.db('outboundMessages').where({ senderId: tess.id }).orderBy('id').pluck('record')
    expect(await waiting()).toEqual(['post', 'comment', 'photo', 'profile'])

    await closeUser(pod, 'tess')

    expect(await waiting()).toEqual(['comment', 'account_deletion'])
  })

  it('needs as many statements for a few people and posts as for many', async () => {
    const [few, many] = [await addLocalUser(pod, 'few'), await addLocalUser(pod, 'many')]
    const fill = async ({ id, userId }: { readonly id: number; readonly userId: number }, count: number) => {
      for (let index = 0; index < count; index += 1) {
        const contact = await addRemotePerson(pod, `p${index}@pods${count}.example`)
        await addPost(pod, { id })
        await pod.db('contacts').insert({ userId, personId: contact.id, sharing: true })
      }
    }
    await fill(few, 2)
    await fill(many, 30)

    const two = await countQueries(pod, () => closeUser(pod, 'few'))
    const thirty = await countQueries(pod, () => closeUser(pod, 'many'))

    expect(thirty).toBe(two)
  })
})
