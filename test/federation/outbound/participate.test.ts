import type { KeyObject } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { newGuid } from '../../../src/domain/new-guid.js'
import { participate, participateInPostponedPosts } from '../../../src/federation/outbound/participate.js'
import { signMessages } from '../../../src/federation/outbound/sign-messages.js'
import { groupOfJob, groupOfRows } from '../../../src/jobs/outbox/job-groups.js'
import { loadJob } from '../../../src/jobs/outbox/load-job.js'
import { Post } from '../../../src/persistence/models/post.js'
import { User } from '../../../src/persistence/models/user.js'
import { UNDELIVERED_LIMITS } from '../../../src/persistence/outbound/limits.js'
import { verifyEnvelope } from '../../../src/protocol/envelopes/verify-envelope.js'
import { readPublicKey } from '../../../src/protocol/signatures/rsa.js'
import type { Services } from '../../../src/services/services.js'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import { addPost } from '../../support/databases/rows.js'
import type { OutboundMessageRow } from '../../support/federation/outbound-messages.js'
import { sentAbout } from '../../support/federation/outbound-messages.js'
import type { LocalUser } from '../../support/people/local-users.js'
import type { RemotePerson } from '../../support/people/remote-people.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

let pod: FederationPod
let ann: LocalUser
let ben: LocalUser
let quin: RemotePerson
beforeAll(async () => {
  pod = await openFederationPod()
  ;({ ann, ben } = await pod.localUsers('ann', 'ben'))
  ;({ quin } = await pod.remotePeople('quin'))
})
afterAll(() => pod.close())
beforeEach(async () => {
  await pod.empty('posts, outbox, outbound_messages, postponed_participations')
  await User.query(pod.db).patch({ lockedAt: null, closedAt: null })
})

async function work(...postGuids: string[]) {
  const data = { postGuids }
  const row = { queue: 'relay', name: 'participate', data: JSON.stringify(data) }
  const [{ id } = { id: 0 }] = await pod.db('outbox').insert(row).returning('id')
  const taken = await loadJob(pod.db, { outboxId: id })
  if (taken === undefined) throw new Error('The outbox row is gone.')
  return { ...taken, data }
}

async function participateIn({ guid }: Pick<Post, 'guid'>, as: Services = pod): Promise<readonly OutboundMessageRow[]> {
  await participate(as, groupOfJob(await work(guid)))
  expect(await pod.rows('outbox')).toEqual([0])
  return pod.db<OutboundMessageRow>('outbound_messages').orderBy('id')
}

describe('participations in the public posts of other pods', () => {
  it('are signed by the account of the pod', async () => {
    const post = await addPost(pod, quin)

    const [message, ...more] = await participateIn(post)

    expect(more).toEqual([])
    expect(message).toMatchObject({ record: 'participation', verb: 'create', public: false, senderId: null })
    expect(message?.entity).toContain('<author>pod-account@pod.example</author>')
    expect(message?.entity).toContain(`<parent_guid>${post.guid}</parent_guid>`)
    expect(await sentAbout(pod, message?.guid ?? '')).toMatchObject([{ to: [quin.address] }])
    expect(await pod.rows('participations')).toEqual([0])
    const { publicKey } = await pod.db('podAccount').first('publicKey')
    const [signed] = (await signMessages(pod, [message?.id ?? 0])).values()
    const keys = new Map([['pod-account@pod.example', readPublicKey(publicKey) as KeyObject]])
    expect(verifyEnvelope(signed?.envelope ?? '', keys, new Date())).toMatchObject({
      sender: 'pod-account@pod.example',
    })
  })

  it('are signed by the account that the settings name', async () => {
    const post = await addPost(pod, quin)

    const [message] = await participateIn(post, withPodminAccount('ben'))

    expect(message).toMatchObject({ senderId: ben.id })
    expect(message?.entity).toContain(`<author>${ben.address}</author>`)
  })

  it.each<readonly [string, string]>([
    ['closed', 'closedAt'],
    ['locked', 'lockedAt'],
  ])('are signed by the account of the pod if the named account is %s', async (_state, column) => {
    await User.query(pod.db)
      .findById(ben.userId)
      .patch({ [column]: new Date() })

    expect(await participateIn(await addPost(pod, quin), withPodminAccount('ben'))).toMatchObject([{ senderId: null }])
  })

  it('waiting participations are sent by the account that has signed them, even if the settings name another one', async () => {
    const post = await addPost(pod, quin)
    await participateIn(post, withPodminAccount('ben'))

    expect(await participateIn(await addPost(pod, quin))).toMatchObject([{ senderId: ben.id }])
  })

  it('are written for as many as came together, but not those of a pod that is asleep or blocked', async () => {
    const remy = await pod.addRemotePerson('remy@r.example')
    const [sleeper, blocked] = [await pod.addRemotePerson('sam@s.example'), await pod.addRemotePerson('tom@t.example')]
    await pod
      .db('pods')
      .where({ host: 's.example' })
      .update({ offlineSince: new Date(0) })
    await pod.db('pods').where({ host: 't.example' }).update({ blockedAt: new Date() })
    const authors = [quin, quin, remy, sleeper, sleeper, blocked]
    const posts = await Promise.all(authors.map((author) => addPost(pod, author)))

    await participate(pod, groupOfJob(await work(...posts.map(({ guid }) => guid))))

    const sent = await pod.db<OutboundMessageRow>('outbound_messages').orderBy('id')
    const to = await Promise.all(sent.map(async ({ guid }) => (await sentAbout(pod, guid)).flatMap((each) => each.to)))
    expect(to.flat().sort()).toEqual([quin.address, remy.address])
    const counted = await pod.db('pods').where('skippedDeliveries', '>', 0).select('host', 'skippedDeliveries')
    expect(counted).toEqual([{ host: 's.example', skippedDeliveries: 2 }])
  })

  it('are written in limited number for a pod that has accepted one, and the following when those have arrived', async () => {
    const limit = UNDELIVERED_LIMITS.participationsWaiting
    const quinta = await pod.addRemotePerson('quill@q.example')
    const values = { authorId: quin.id, type: 'StatusMessage', public: true, text: 'Good morning' } as const
    const posts = await Post.query(pod.db)
      .insert(Array.from({ length: limit + 30 }, () => ({ guid: newGuid(), ...values })))
      .returning('*')
    const late = [await addPost(pod, quinta), await addPost(pod, quinta)]
    const guids = [...posts, ...late].map(({ guid }) => guid)
    const { podId } = await pod.db('people').where({ id: quin.id }).first()
    await pod.db('pods').update({ participationAt: new Date() })
    const waiting = async () => pod.db<OutboundMessageRow>('outbound_messages').orderBy('id').select('about', 'id')

    await participate(pod, groupOfJob(await work(...guids.slice(0, 60))))
    await participate(pod, groupOfJob(await work(...guids.slice(60))))

    // One more for an author without any.
    const abouts = new Set((await waiting()).map(({ about }) => about))
    expect(abouts).toEqual(new Set([...guids.slice(0, limit), guids[limit + 30]]))

    await pod.db('deliveries').delete() // they have arrived
    await participateInPostponedPosts(pod, podId)

    expect((await waiting()).map(({ about }) => about).toSorted()).toEqual(guids.toSorted())
    expect(await pod.rows('deliveries')).toEqual([31])
  })

  it('are written for postponed posts that were stored before the first one', async () => {
    const { podId } = await pod.db('people').where({ id: quin.id }).first()
    await pod.db('pods').update({ participationAt: null })
    const [earlier, first] = [await addPost(pod, quin), await addPost(pod, quin)]
    await participateIn(first)
    expect(await participateIn(earlier)).toHaveLength(1)

    await deliverAll()
    await participateInPostponedPosts(pod, podId)

    expect(await pod.rows('deliveries', 'postponed_participations')).toEqual([1, 0])
    expect(await participatedPosts()).toEqual([earlier.guid, first.guid].toSorted())
  })

  it('are written for postponed posts if the waiting one is delivered before they are committed', async () => {
    await pod.db('pods').update({ participationAt: null })
    const [first, second] = [await addPost(pod, quin), await addPost(pod, quin)]
    await participateIn(first)
    await pod.db.raw(`
      create function deliver_all() returns trigger language plpgsql as $$
      begin
        delete from deliveries;
        update pods set participation_at = now();
        return null;
      end $$;
      create trigger deliver_all after insert on postponed_participations execute function deliver_all()
    `)
    try {
      await participateIn(second)
    } finally {
      await pod.db.raw('drop trigger deliver_all on postponed_participations; drop function deliver_all()')
    }

    expect(await pod.rows('deliveries', 'postponed_participations')).toEqual([1, 0])
    expect(await participatedPosts()).toEqual([first.guid, second.guid].toSorted())
  })

  it('are written once for a post whose job is repeated after the delivery', async () => {
    const post = await addPost(pod, quin)
    await participateIn(post)
    await deliverAll()

    await participateIn(post)

    expect(await pod.rows('deliveries')).toEqual([0])
  })

  it('are written for many outbox rows together, except for rows that another worker has done', async () => {
    const posts = [await addPost(pod, quin), await addPost(pod, quin), await addPost(pod, quin)]
    await pod.db('pods').update({ participationAt: new Date() })
    const works = await Promise.all(posts.map(({ guid }) => work(guid)))
    const rows = works.map(({ outboxId = 0, data }) => ({ id: outboxId, data }))
    await pod.db('outbox').where({ id: rows[0]?.id }).delete()

    await participate(pod, groupOfRows(rows))

    const abouts = (await pod.db<OutboundMessageRow>('outbound_messages')).map(({ about }) => about)
    expect(new Set(abouts)).toEqual(new Set(posts.slice(1).map(({ guid }) => guid)))
    expect(await pod.rows('outbox')).toEqual([0])
  })

  it('are written one in all for a pod that has never accepted any, and for its other people when it has', async () => {
    const quinta = await pod.addRemotePerson('quinta@q.example')
    const { podId } = await pod.db('people').where({ id: quin.id }).first()
    await pod.db('pods').update({ participationAt: null })
    const first = await addPost(pod, quin)
    const others = [await addPost(pod, quin), await addPost(pod, quin), await addPost(pod, quinta)]
    await participate(pod, groupOfJob(await work(first.guid, ...others.map(({ guid }) => guid))))
    await participate(pod, groupOfJob(await work(...others.map(({ guid }) => guid))))
    expect(await pod.rows('deliveries')).toEqual([1])

    await pod.db('deliveries').delete()
    await pod.db('pods').where({ id: podId }).update({ participationAt: new Date() })
    await participateInPostponedPosts(pod, podId)

    const about = (await pod.db<OutboundMessageRow>('outbound_messages')).map((message) => message.about)
    expect(about.toSorted()).toEqual([first, ...others].map(({ guid }) => guid).toSorted())
  })

  it('take as many statements for a hundred posts as for one', async () => {
    await pod.db('pods').update({ participationAt: new Date() })
    const guids: string[] = []
    for (let count = 0; count < 100; count += 1) guids.push((await addPost(pod, quin)).guid)
    const [one, many] = [await work(guids[0] ?? ''), await work(...guids.slice(1))]

    const statements = await statementsDuring(() => participate(pod, groupOfJob(one)), 'worker')

    expect(await statementsDuring(() => participate(pod, groupOfJob(many)), 'worker')).toBe(statements)
    expect(await pod.rows('deliveries')).toEqual([100])
  })

  it('are stored once, although the job runs twice', async () => {
    const post = await addPost(pod, quin)
    await participateIn(post)

    expect(await participateIn(post)).toHaveLength(1)
    expect(await pod.rows('deliveries')).toEqual([1])
  })

  async function deliverAll(): Promise<void> {
    await pod.db('deliveries').delete()
    await pod.db('pods').update({ participationAt: new Date() })
  }

  async function participatedPosts() {
    return (await pod.db<OutboundMessageRow>('outbound_messages')).map(({ about }) => about).toSorted()
  }

  function withPodminAccount(podminAccount: string): Services {
    return { ...pod, config: { ...pod.config, podminAccount } }
  }
})

describe('no participation is sent', () => {
  it.each<readonly [string, () => Promise<Pick<Post, 'guid'>>]>([
    ['for a post of a local person', () => addPost(pod, ann)],
    ['for a private post', () => addPost(pod, quin, { public: false })],
    ['for a post that is gone', async () => ({ guid: newGuid() })],
    [
      'when all accounts are closed',
      async () => {
        await User.query(pod.db).patch({ closedAt: new Date() })
        return addPost(pod, quin)
      },
    ],
  ])('%s', async (_what, make) => {
    expect(await participateIn(await make())).toEqual([])
  })
})
