import { createPublicKey } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { closeUser } from '../../../src/domain/accounts/closing/close-now.js'
import { publishPost } from '../../../src/domain/posts/publish-post.js'
import { readHcard } from '../../../src/protocol/discovery/discovery-documents.js'
import { readMagicEnvelope, verifyMagicEnvelope } from '../../../src/protocol/envelopes/magic-envelope.js'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import { viewerOf } from '../../support/people/local-users.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { buildPod, type TestPod } from '../../support/pods/build-pod.js'

const DEFAULT = 'https://p.example/images/user/default.png'

describe('GET /hcard/users/:guid', () => {
  let pod: TestPod
  beforeAll(async () => {
    pod = await buildPod({ environment: { POD_URL: 'https://p.example' } })
  })
  afterAll(() => pod.close())

  const ask = (guid: string, headers = {}) => pod.inject({ url: `/hcard/users/${guid}`, headers })

  it('is a page on which all ten classes are found', async () => {
    const { ann } = await pod.people('ann')
    await ann.editProfile({
      firstName: 'Ann',
      lastName: 'Other',
      imageUrl: 'https://p.example/uploads/images/thumb_large_a.png',
      imageUrlMedium: '/uploads/images/thumb_medium_a.png',
    })

    const response = await ask(ann.account.guid)

    expect(response.statusCode).toBe(200)
    expect(response.headers['content-type']).toBe('text/html; charset=utf-8')
    for (const name of ['uid', 'nickname', 'fn', 'given_name', 'family_name', 'searchable', 'key']) {
      expect(response.body).toMatch(new RegExp(`class="${name}"`))
    }
    for (const name of ['entity_photo', 'entity_photo_medium', 'entity_photo_small']) {
      expect(response.body).toMatch(new RegExp(`class="${name}".*class="photo[ "].*src="https://`))
    }
    expect(readHcard(response.body)).toEqual({
      guid: ann.account.guid,
      nickname: 'ann',
      fullName: 'Ann Other',
      firstName: 'Ann',
      lastName: 'Other',
      searchable: true,
      publicKey: expect.stringContaining('-----BEGIN PUBLIC KEY-----'),
      imageUrl: 'https://p.example/uploads/images/thumb_large_a.png',
      imageUrlMedium: 'https://p.example/uploads/images/thumb_medium_a.png',
      imageUrlSmall: 'https://p.example/uploads/images/thumb_large_a.png',
    })
  })

  it('has the public key of the person', async () => {
    const { ann } = await pod.people('ann')
    const post = await publishPost(pod.pod, await viewerOf(pod.pod, ann), { text: 'Hello', public: true })
    const { publicKey } = readHcard((await ask(ann.account.guid)).body)

    const { body } = await pod.inject(`/fetch/post/${post.guid}`)

    expect(() => verifyMagicEnvelope(readMagicEnvelope(body), createPublicKey(publicKey))).not.toThrow()
  })

  it('has empty names and default pictures for a person without them', async () => {
    const { ben } = await pod.people('ben')

    const { body } = await ask(ben.account.guid)

    for (const name of ['fn', 'given_name', 'family_name']) expect(body).toContain(`<span class="${name}"></span>`)
    expect(readHcard(body)).toMatchObject({ imageUrl: DEFAULT, imageUrlMedium: DEFAULT, imageUrlSmall: DEFAULT })
  })

  it('has names with markup escaped', async () => {
    const { eve } = await pod.people('eve')
    await eve.editProfile({ firstName: '<b>&"', lastName: "'><script>" })

    const { body } = await ask(eve.account.guid)

    expect(body).not.toMatch(/<b>|<script>|&"/)
    expect(readHcard(body)).toMatchObject({ firstName: '<b>&"', lastName: "'><script>" })
  })

  it('never has a picture that is not http(s)', async () => {
    const { mal } = await pod.people('mal')
    await mal.editProfile({ imageUrl: 'javascript:alert(1)', imageUrlSmall: 'https://' })

    expect(readHcard((await ask(mal.account.guid)).body)).toMatchObject({ imageUrl: DEFAULT, imageUrlSmall: DEFAULT })
  })

  it('answers 404 for unknown and remote persons and closed accounts', async () => {
    const { gone } = await pod.people('gone')
    const quin = await addRemotePerson(pod.pod, 'quin@q.example')
    expect((await ask(gone.account.guid)).statusCode).toBe(200)
    await closeUser(pod.pod, 'gone')

    for (const guid of ['0'.repeat(32), quin.guid, gone.account.guid, 'short', '%00', 'a'.repeat(300)]) {
      expect([guid, (await ask(guid)).statusCode]).toEqual([guid, 404])
    }
  })

  it('names this pod regardless of the requested host', async () => {
    const { ben } = await pod.people('ben')

    const { body } = await ask(ben.account.guid, { host: 'evil.example' })

    expect(body).toContain(DEFAULT)
    expect(body).not.toContain('evil.example')
  })

  it('runs one statement', async () => {
    const { ben } = await pod.people('ben')

    expect(await statementsDuring(() => ask(ben.account.guid))).toBe(1)
  })
})
