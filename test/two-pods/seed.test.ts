import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type CompletePod, startCompletePods, untilQuiet } from '../support/processes/complete-pod.js'

interface Seeded {
  readonly username: string
  readonly address: string
  readonly access_token: string
}

interface News {
  readonly type: string
  readonly event_creators: readonly { readonly network_id: string }[]
}

/** The playground of the README. */
describe('pod seed', { timeout: 180_000 }, () => {
  let left: CompletePod
  let right: CompletePod
  let alice: Seeded

  beforeAll(async () => {
    ;[left, right] = await startCompletePods(2)
  }, 120_000)
  afterAll(async () => {
    await Promise.all([left?.stop(), right?.stop()])
  })

  async function read<Answer>(pod: CompletePod, path: string, { access_token }: Seeded): Promise<Answer> {
    const answer = await fetch(`http://${pod.host}/api/v1${path}`, {
      headers: { authorization: `Bearer ${access_token}` },
    })
    expect(answer.status).toBe(200)
    return answer.json() as Promise<Answer> // as the API documents it
  }

  it('creates two people with tokens and with entries in each of their lists', async () => {
    const seeded = (await left.json('seed')) as Seeded[]

    expect(seeded).toMatchObject([
      { username: 'alice', address: `alice@${left.host}` },
      { username: 'bob', address: `bob@${left.host}` },
    ])
    alice = seeded[0] as Seeded
    expect(await read(left, '/user', alice)).toMatchObject({ name: 'Alice', tags: ['trees', 'gardening'] })
    expect(await read(left, '/conversations', alice)).toMatchObject([{ subject: 'Saturday', read: false }])
    const types = (await read<News[]>(left, '/notifications', alice)).map(({ type }) => type)
    expect(new Set(types)).toEqual(new Set(['started_sharing', 'reshared', 'commented_on_post', 'liked']))
  })

  it('lets them share with a person on another pod, who is notified', async () => {
    const [alma] = (await right.json('seed', '--meet', alice.address)) as Seeded[]
    await untilQuiet(left, right)

    const news = await read<News[]>(left, '/notifications?only_unread=true', alice)
    const fromThere = news
      .filter(({ event_creators: [by] }) => by?.network_id === alma?.address)
      .map(({ type }) => type)
    expect(new Set(fromThere)).toEqual(new Set(['started_sharing', 'mentioned']))
  })

  it('changes nothing on a pod with sample data', async () => {
    const { code, stderr } = await left.command('seed')

    expect([code, stderr]).toEqual([1, 'seed needs an empty pod; the account alice already exists.\n'])
  })
})
