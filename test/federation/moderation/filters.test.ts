import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { COMMAND_ACTOR } from '../../../src/domain/moderation/actor.js'
import { startFilterLoader } from '../../../src/domain/moderation/filters/active-filters.js'
import { dryRunFilter } from '../../../src/domain/moderation/filters/dry-run.js'
import { addFilter, type NewFilter, readModerationFilter } from '../../../src/domain/moderation/filters/filters.js'
import { pruneFilterHits } from '../../../src/persistence/moderation/filters.js'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import { addPost } from '../../support/databases/rows.js'
import { commentBy, postBy, profileOf } from '../../support/federation/entities.js'
import { allStored, privateMessage, publicMessage, receive } from '../../support/federation/inbound-messages.js'
import type { LocalUser } from '../../support/people/local-users.js'
import type { RemotePerson } from '../../support/people/remote-people.js'
import { type FederationPod, openFederationPod } from '../../support/pods/federation-pod.js'

let pod: FederationPod
let ann: LocalUser
let quin: RemotePerson
let remy: RemotePerson
beforeAll(async () => {
  pod = await openFederationPod()
  ;({ ann } = await pod.localUsers('ann'))
  ;({ quin, remy } = await pod.remotePeople('quin', 'remy'))
})
afterAll(() => pod.close())
beforeEach(() =>
  pod.empty(
    'posts, notifications, outbound_messages, outbox, waiting, tombstones, filters, moderation_cases, contacts',
  ),
)

const add = async (input: Partial<NewFilter> = {}) => {
  const rule = { kind: 'word', value: 'casino', action: 'reject', state: 'active', ...input } as const
  return (await addFilter(pod, COMMAND_ACTOR, rule, { reason: 'Spam' })).filter
}
const hitsOf = async ({ id }: { readonly id: number }) => readModerationFilter(pod, COMMAND_ACTOR, id)
const spam = (author: RemotePerson, fields = {}) =>
  publicMessage(author, postBy(author, { text: 'The best CASINO', ...fields }))

describe('a filter that flags profiles', () => {
  it('opens a closed case of the person again for another profile', async () => {
    await add({ action: 'flag' })
    const caseAfter = async (bio: string) => {
      await receive(pod, publicMessage(remy, profileOf(remy, { bio })))
      return pod.db('moderationCases').first('state', 'text', 'closedAt')
    }
    const closeAgo = (minutes: number) =>
      pod.db('moderationCases').update({ state: 'dismissed', closedAt: new Date(Date.now() - minutes * 60_000) })

    expect(await caseAfter('Casino one')).toMatchObject({ state: 'open', text: expect.stringContaining('Casino one') })
    await closeAgo(59)
    expect(await caseAfter('Casino two')).toMatchObject({ state: 'dismissed' })
    await closeAgo(61)
    expect(await caseAfter('Casino one')).toMatchObject({ state: 'dismissed' })
    expect(await caseAfter('Casino three')).toMatchObject({
      ...{ state: 'open', closedAt: null },
      text: expect.stringContaining('Casino three'),
    })
    await pod.db('moderationCases').update({ state: 'dismissed', closedAt: new Date(0), ignoreFurther: true })
    expect(await caseAfter('Casino four')).toMatchObject({ state: 'dismissed' })
    await receive(pod, publicMessage(remy, profileOf(remy, { bio: '' })))
  })
})

describe('a filter that rejects', () => {
  it('drops posts, comments and profiles, and keeps what was hit', async () => {
    const filter = await add()
    const post = await addPost(pod, ann)
    const profile = publicMessage(remy, profileOf(remy, { bio: 'casino' }))
    const good = publicMessage(remy, postBy(remy, { text: 'Casinos' }))

    expect(
      await receive(pod, spam(quin), publicMessage(quin, commentBy(quin, post, { text: 'casino!' })), profile, good),
    ).toEqual({
      waiting: [],
      ignored: 0,
      rejected: ['Filtered', 'Filtered', 'Filtered'],
    })

    expect(await pod.rows('posts', 'comments')).toEqual([2, 0])
    const { hitsIn30Days, latest, days } = await hitsOf(filter)
    expect(hitsIn30Days).toBe(3)
    expect(days).toMatchObject([{ hits: 3 }])
    expect(
      latest.map(({ targetType, authorAddress, excerpt, effect }) => [targetType, authorAddress, excerpt, effect]),
    ).toEqual(
      expect.arrayContaining([
        ['post', quin.address, 'The best CASINO', 'rejected'],
        ['comment', quin.address, 'casino!', 'rejected'],
        ['person', remy.address, 'casino', 'rejected'],
      ]),
    )
  })

  it('lets people pass whom a local user follows, unless it does not exempt them', async () => {
    await pod.db('contacts').insert({ userId: ann.userId, personId: quin.id, receiving: true })
    const filter = await add()

    expect(await receive(pod, spam(quin), spam(remy))).toMatchObject({ rejected: ['Filtered'] })
    await add({ exemptFollowed: false })
    expect(await receive(pod, spam(quin))).toMatchObject({ rejected: ['Filtered'] })
    expect((await hitsOf(filter)).hitsIn30Days).toBe(1)
  })

  it('heeds the origin and the age of the account', async () => {
    await add({ origin: 'local' })
    await add({ accountAgeDays: 3, value: 'poker' })
    await pod
      .db('people')
      .where({ id: remy.id })
      .update({ createdAt: new Date(Date.now() - 4 * 86_400_000) })
    const poker = (author: RemotePerson) => publicMessage(author, postBy(author, { text: 'poker casino' }))

    expect(await receive(pod, poker(quin), poker(remy))).toEqual({ ...allStored, rejected: ['Filtered'] })
  })

  it('a filter in the state trial only counts, and in the state off does nothing', async () => {
    const trial = await add({ state: 'trial' })
    const off = await add({ state: 'off' })

    expect(await receive(pod, spam(quin))).toEqual(allStored)

    expect((await hitsOf(trial)).latest).toMatchObject([{ effect: 'counted' }])
    expect((await hitsOf(off)).hitsIn30Days).toBe(0)
  })
})

describe('private content', () => {
  const secret = (text: string) => privateMessage(quin, ann, postBy(quin, { public: false, text }))

  it('is not compared with a filter for public content', async () => {
    const filter = await add()

    expect(await receive(pod, secret('casino'))).toEqual(allStored)
    expect((await hitsOf(filter)).hitsIn30Days).toBe(0)
  })

  it('is compared with a private filter, without keeping its text', async () => {
    const filter = await add({ isPrivate: true, action: 'flag' })

    expect(await receive(pod, secret('our casino'))).toEqual(allStored)

    expect((await hitsOf(filter)).latest).toMatchObject([{ isPublic: false, excerpt: null, effect: 'flagged' }])
    expect(await pod.db('moderationCases')).toMatchObject([{ kind: 'filter', public: false, text: null }])
  })
})

describe('a filter that flags', () => {
  it('opens one case for each thing, with its text', async () => {
    const filter = await add({ action: 'flag' })
    const other = await add({ action: 'flag', value: 'best' })

    expect(await receive(pod, spam(quin), spam(remy))).toEqual(allStored)

    const cases = await pod.db('moderationCases').orderBy('authorAddress')
    expect(cases).toMatchObject([
      {
        kind: 'filter',
        state: 'open',
        targetType: 'post',
        authorAddress: quin.address,
        text: 'The best CASINO',
        reportCount: 0,
      },
      { kind: 'filter', state: 'open', authorAddress: remy.address },
    ])
    expect(await pod.db('moderationCaseEvents').where({ caseId: cases[0].id })).toMatchObject([
      { event: 'reported', text: `filter ${filter.id}, ${other.id}`, actorId: null },
    ])
  })
})

describe('the statements of a batch', () => {
  const batch = (count: number, text: string) =>
    Array.from({ length: count }, () => publicMessage(quin, postBy(quin, { text })))
  const statements = (messages: ReturnType<typeof batch>) => statementsDuring(() => receive(pod, ...messages), 'worker')

  it('are the same with filters that nothing matches, and two more for any number of hits', async () => {
    await receive(pod, ...batch(1, 'warm'))
    const without = await statements(batch(1, 'hello'))
    await add({ action: 'count' })

    expect(await statements(batch(1, 'hello'))).toBe(without)
    expect(await statements(batch(1, 'casino'))).toBe(without + 2)
    expect(await statements(batch(40, 'casino'))).toBe(await statements(batch(2, 'casino')))
  })
})

describe('a dry run', () => {
  it('finds what the same filter would hit when it arrives, and changes nothing', async () => {
    const rule = { kind: 'word', value: 'casino', action: 'flag', state: 'active' } as const
    const created_at = new Date()
    const post = await addPost(pod, ann)
    const messages = [
      spam(quin, { created_at }),
      spam(remy, { created_at }),
      publicMessage(remy, commentBy(remy, post, { text: 'casino', created_at })),
    ]
    const reread = [
      spam(quin, { created_at }),
      spam(remy, { created_at }),
      publicMessage(remy, commentBy(remy, post, { text: 'casino', created_at })),
    ]
    await pod.db('contacts').insert({ userId: ann.userId, personId: quin.id, receiving: true })
    await receive(pod, ...messages, publicMessage(remy, postBy(remy, { text: 'casino' }))) // too old

    const run = await dryRunFilter(pod, COMMAND_ACTOR, rule, {})

    expect(run).toMatchObject({ hits: 2, authors: 1, pods: 1, followed: 0, complete: true })
    expect(run.samples).toMatchObject([{ excerpt: 'The best CASINO' }, { type: 'comment', excerpt: 'casino' }])
    expect(await pod.rows('filters', 'filter_hits', 'moderation_cases')).toEqual([0, 0, 0])
    const filter = await add(rule)
    await receive(pod, ...reread)
    expect((await hitsOf(filter)).hitsIn30Days).toBe(run.hits)
    expect(await dryRunFilter(pod, COMMAND_ACTOR, { ...rule, exemptFollowed: false }, {})).toMatchObject({
      followed: 1,
    })
  })
})

describe('the hits', () => {
  it('are kept to the last 50 of a filter', async () => {
    const filter = await add({ action: 'count' })
    for (let round = 0; round < 2; round += 1) await receive(pod, ...Array.from({ length: 60 }, () => spam(quin)))

    await pruneFilterHits(pod.db, 50)

    expect(await pod.rows('filter_hits')).toEqual([50])
    expect(await hitsOf(filter)).toMatchObject({ hitsIn30Days: 120 })
  })
})

it('another process has a new filter when it reloads', async () => {
  const other = { ...pod, jobs: { ...pod.jobs } }
  await receive(other, publicMessage(quin, postBy(quin)))
  await add()
  expect(await receive(other, spam(quin))).toEqual(allStored)

  startFilterLoader(other).close()

  await expect.poll(() => receive(other, spam(quin))).toMatchObject({ rejected: ['Filtered'] })
})
