import { createPrivateKey } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { RemotePodError } from '../../src/federation/remote-pod/remote-pod-error.js'
import type { OpenPod } from '../../src/open-pod.js'
import { writeHcard, writeWebFinger } from '../../src/protocol/discovery-documents.js'
import { writeEntity } from '../../src/protocol/entities/registry.js'
import { sealMagicEnvelope } from '../../src/protocol/magic-envelope.js'
import { newGuid, readKey } from '../support/network.js'
import { startTestPod, type TestPod } from '../support/test-pod.js'

const ZOE = 'zoe@z.example'
const zoeGuid = newGuid()
const postGuid = newGuid()
const image = 'https://z.example/images/user/default.png'

/** What the pod of zoe answers; every other pod is away. */
const answers: ReadonlyMap<string, string> = new Map([
  [
    `https://z.example/.well-known/webfinger?resource=acct:${ZOE}`,
    JSON.stringify(writeWebFinger({ address: ZOE, guid: zoeGuid, podUrl: 'https://z.example/' })),
  ],
  [
    `https://z.example/hcard/users/${zoeGuid}`,
    writeHcard({
      guid: zoeGuid,
      publicKey: readKey('4.public.pem'),
      nickname: 'zoe',
      fullName: 'Zoe',
      firstName: 'Zoe',
      lastName: '',
      searchable: true,
      imageUrl: image,
      imageUrlMedium: image,
      imageUrlSmall: image,
    }),
  ],
  [
    `https://z.example/fetch/post/${postGuid}`,
    sealMagicEnvelope(
      writeEntity({
        type: 'status_message',
        author: ZOE,
        guid: postGuid,
        created_at: new Date('2024-05-06T07:08:09Z'),
        public: true,
        text: 'Hello from afar',
        photos: [],
      }),
      ZOE,
      createPrivateKey(readKey('4.private.pem')),
    ),
  ],
])

describe('a link to what is not known here yet', () => {
  let pod: TestPod
  let asked: string[] = []
  beforeAll(async () => {
    const withoutNetwork = (opened: OpenPod): OpenPod => ({
      ...opened,
      remote: {
        async get(url) {
          asked.push(String(url))
          const body = answers.get(String(url))
          if (body === undefined) throw new RemotePodError('net', 'There is nobody.')
          return { status: 200, body: Buffer.from(body), url: new URL(url), contentType: undefined }
        },
        post: () => Promise.reject(new Error('Nothing is sent in these tests.')),
      },
    })
    pod = await startTestPod({ environment: { POD_URL: 'https://p.example' }, change: withoutNetwork })
  })
  afterAll(() => pod.close())

  async function where(url: string): Promise<readonly [number, unknown]> {
    asked = []
    const { statusCode, headers } = await pod.inject(url)
    return [statusCode, headers.location]
  }
  const link = (text: string) => where(`/link?q=${encodeURIComponent(text)}`)

  it('leads nowhere, and asks once, where nobody answers', async () => {
    expect(await link('diaspora://nobody@y.example')).toEqual([404, undefined])
    expect(asked).toHaveLength(1)
    expect(await where('/people?q=nobody@y.example')).toEqual([404, undefined])
    expect(asked).toEqual([])
  })

  it('fetches a post from its author’s pod and leads to it; then it is known', async () => {
    const text = `diaspora://${ZOE}/post/${postGuid}`
    const page = `https://p.example/posts/${postGuid}`

    expect(await link(text)).toEqual([302, page])
    expect(asked).toContain(`https://z.example/fetch/post/${postGuid}`)
    expect(await link(text)).toEqual([302, page])
    expect(asked).toEqual([])
    expect(await where(`/posts/${postGuid}`)).toEqual([302, page.replace('p.example', 'z.example')])
  })

  it('finds a person and leads to them', async () => {
    const page = `https://p.example/people/${zoeGuid}`

    expect(await where(`/people?q=acct:${ZOE}`)).toEqual([302, page])
    expect(await link(`web+diaspora://${ZOE}/`)).toEqual([302, page])
    expect(await where(`/people/${zoeGuid}`)).toEqual([302, `https://z.example/people/${zoeGuid}`])
  })

  it('asks nobody for what would have to be here, or for what nobody gives away', async () => {
    for (const text of [
      `diaspora://ann@p.example/post/${newGuid()}`,
      `diaspora://ann@p.example`,
      `diaspora://${ZOE}/comment/${newGuid()}`,
      `diaspora://${ZOE}/profile/${newGuid()}`,
      'http://127.0.0.1/',
    ]) {
      expect([text, ...(await link(text))]).toEqual([text, 404, undefined])
      expect([text, asked]).toEqual([text, []])
    }
  })
})
