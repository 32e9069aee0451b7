import { expect, it } from 'vitest'
import { signIn } from '../../src/domain/accounts/sign-in.js'
import { outboundHandlers, outboundSlowHandlers } from '../../workers/handlers/outbound.js'
import { inProcessDelivery } from '../../workers/in-process-runs/in-process-handlers.js'
import { startFakePods } from '../support/federation/fake-pods.js'
import { addRecordingPod } from '../support/federation/recording-pod.js'
import { viewerOf } from '../support/people/local-users.js'
import { buildPod } from '../support/pods/build-pod.js'
import { startTestWorkers } from '../support/queues/test-workers.js'
import { openRestorePlace, SECRET_KEY, startBackedUpPod } from './backup-fixture.js'

interface Shown {
  readonly guid: string
}

it('a restored pod continues: ids, streams, mentions, search, sign-in, tokens and deliveries', async () => {
  await using fakePods = await startFakePods()
  await using source = await startBackedUpPod()
  const { ann, ben } = await source.people('ann', 'ben')
  const other = await addRecordingPod(fakePods, source.pod, 'q.example:3000')
  const { row: quin } = await other.person()
  const { userId } = await viewerOf(source.pod, ann)
  await source.pod.db('contacts').insert({ userId, personId: quin.id, sharing: true, receiving: true })
  const written = await ann.post('/api/v1/posts', { body: 'Before the backup #kept', public: true })
  const { guid: before }: Shown = written.json()
  const manifest = await source.backUp()
  await using place = await openRestorePlace()
  const { repository, identity } = source
  await place.restore(manifest, { repository, identities: [identity], secretKey: SECRET_KEY })
  const environment = { DATABASE_URL: place.url, DATA_DIR: place.dataDir, UPLOADS_DIR: place.uploadsDir, SECRET_KEY }
  await using restored = await buildPod({ fakePods, process: 'worker', environment })
  const ask = async (token: string, url: string, payload?: object) => {
    const headers = { authorization: `Bearer ${token}` }
    const answer = await restored.inject({ url, headers, ...(payload && { method: 'POST', payload }) })
    expect({ url, status: answer.statusCode }).toEqual({ url, status: 200 })
    return answer.json()
  }
  const guidsOf = async (token: string, url: string) => (await ask(token, url)).map(({ guid }: Shown) => guid)

  const body = 'After it, @{ben@pod.example} #kept'
  const { guid: after }: Shown = await ask(ann.token, '/api/v1/posts', { body, public: true })

  const ids = await restored.pod.db('posts').orderBy('id').pluck('guid')
  expect(ids).toEqual([before, after])
  expect(await guidsOf(ann.token, '/api/v1/streams/main')).toEqual([after, before])
  expect(await guidsOf(ben.token, '/api/v1/streams/mentions')).toEqual([after])
  expect(await guidsOf(ben.token, '/api/v1/search/posts?tag=kept')).toEqual([after, before])
  expect(await guidsOf(ann.token, '/api/v1/search/users?name_or_handle=ben')).toEqual([ben.account.guid])
  expect(await signIn(restored.pod, 'ann', 'the password of ann')).toBeDefined()

  const handlers = { outbound: outboundHandlers, 'outbound-slow': outboundSlowHandlers }
  const queues = ['outbound', 'outbound-slow'] as const
  const workers = startTestWorkers(restored.pod, { handlers, queues, inProcessDelivery })
  const delivered = () =>
    other.received.map(({ body: envelope }) => {
      const [, data = ''] = /<me:data[^>]*>([^<]+)</.exec(envelope) ?? []
      return Buffer.from(data, 'base64url').toString()
    })
  await expect.poll(delivered).toContainEqual(expect.stringContaining(`<guid>${after}</guid>`))
  await workers.close()
})
