import { afterAll, beforeAll, expect, it } from 'vitest'
import { createUser } from '../../../src/domain/accounts/accounts.js'
import { findOrMakePodAccount, type PodAccount } from '../../../src/domain/accounts/pod-account.js'
import { readHcard, readWebFinger } from '../../../src/protocol/discovery/discovery-documents.js'
import { countRows } from '../../support/databases/rows.js'
import type { TestPerson } from '../../support/people/local-users.js'
import { buildPod, type TestPod } from '../../support/pods/build-pod.js'

let pod: TestPod
let ann: TestPerson
let account: PodAccount
beforeAll(async () => {
  pod = await buildPod()
  ;({ ann } = await pod.people('ann'))
  account = await findOrMakePodAccount(pod.pod)
})
afterAll(() => pod.close())

it('the account of the pod is made once', async () => {
  expect(await findOrMakePodAccount({ ...pod.pod, db: pod.pod.db.withUserParams({}) })).toEqual(account)
  expect(account).toEqual({ guid: expect.stringMatching(/^[0-9a-f]{32}$/), address: 'pod-account@pod.example' })
  expect(await countRows(pod.pod, ['pod_account'])).toEqual([1])
})

it('its key is stored encrypted, for this use only', async () => {
  const { publicKey, sealedPrivateKey } = await pod.pod.db('podAccount').first()

  expect(sealedPrivateKey.includes('PRIVATE KEY')).toBe(false)
  expect(pod.pod.secrets.decrypt(sealedPrivateKey, 'pod account')).toContain('PRIVATE KEY')
  expect(() => pod.pod.secrets.decrypt(sealedPrivateKey, 'user 1')).toThrow()
  expect(publicKey).toContain('PUBLIC KEY')
})

it('other pods find its key by its address', async () => {
  const found = await pod.inject(`/.well-known/webfinger?resource=acct:${account.address}`)
  const { hcardUrl } = readWebFinger(found.body, account.address)
  expect(hcardUrl).toBe(`https://pod.example/hcard/users/${account.guid}`)

  const { statusCode, body } = await pod.inject(new URL(hcardUrl).pathname)

  const { publicKey } = await pod.pod.db('podAccount').first('publicKey')
  expect(statusCode).toBe(200)
  expect(readHcard(body)).toMatchObject({ guid: account.guid, publicKey: publicKey.trim(), searchable: false })
})

it('it has no page and no stream, and is not found by a search', async () => {
  const paths = [`/people/${account.guid}`, `/people/${account.guid}/stream`]
  for (const path of paths) expect((await pod.inject(path)).statusCode).toBe(404)

  const search = await ann.get('/api/v1/search/users?name_or_handle=pod-account')
  expect([search.statusCode, search.json()]).toEqual([200, []])
  expect((await ann.get(`/api/v1/users/${account.guid}`)).statusCode).toBe(404)
})

it('a private message to it is accepted, like one to a closed account', async () => {
  const payload = JSON.stringify({ aes_key: 'AAAA', encrypted_magic_envelope: 'AAAA' })

  const { statusCode } = await pod.inject({ method: 'POST', url: `/receive/users/${account.guid}`, payload })

  expect(statusCode).toBe(202)
})

it.each(['pod-account', 'pod-account-2'])('the username %s is reserved', async (username) => {
  const password = 'long enough for a test'

  await expect(createUser(pod.pod, { username, password })).rejects.toMatchObject({ reason: 'username_reserved' })
})

it('it gets another name where a person had the name before', async () => {
  await using older = await buildPod()
  const { zoe } = await older.people('zoe')
  const { guid } = zoe.account
  await older.pod.db('people').where({ guid }).update({ address: 'pod-account@pod.example' })

  expect(await findOrMakePodAccount(older.pod)).toMatchObject({ address: 'pod-account-2@pod.example' })
})
