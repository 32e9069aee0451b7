import { createCipheriv, createHash, randomBytes } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { bindPrivateKeys, loadPrivateKey } from '../../src/domain/accounts/private-keys.js'
import { UserSecrets } from '../../src/persistence/models/user.js'
import { createSecrets } from '../../src/services/secrets.js'
import { viewerOf } from '../support/people/local-users.js'
import { buildPod, type TestPod } from '../support/pods/build-pod.js'

const KEY = createHash('sha256').update('a key of this test').digest()

let test: TestPod
let pod: TestPod['pod']
beforeAll(async () => {
  test = await buildPod()
  pod = { ...test.pod, secrets: createSecrets(KEY) }
})
afterAll(() => test.close())

/** As versions did it that did not bind keys to their users. */
function sealUnbound(text: string): Buffer {
  const nonce = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', KEY, nonce)
  return Buffer.concat([nonce, cipher.update(text), cipher.final(), cipher.getAuthTag()])
}

it('keys that an earlier version has sealed are bound to their users, and open for no other', async () => {
  const people = await test.people('ann', 'ben')
  const [ann, ben] = [await viewerOf(pod, people.ann), await viewerOf(pod, people.ben)]
  const { privateKey } = await pod.crypto.generateKeyPair()
  for (const { userId } of [ann, ben]) {
    await UserSecrets.query(pod.db)
      .findById(userId)
      .patch({ sealedPrivateKey: sealUnbound(privateKey), bound: false })
  }
  await expect(loadPrivateKey(pod, ann.personId)).rejects.toThrow('unable to authenticate')

  expect(await bindPrivateKeys(pod)).toBe(2)
  expect(await bindPrivateKeys(pod)).toBe(0)

  expect((await loadPrivateKey(pod, ann.personId)).asymmetricKeyType).toBe('rsa')
  const { sealedPrivateKey } = await UserSecrets.query(pod.db).findById(ann.userId).throwIfNotFound()
  await UserSecrets.query(pod.db).findById(ben.userId).patch({ sealedPrivateKey })
  await expect(loadPrivateKey(pod, ben.personId)).rejects.toThrow('unable to authenticate')
})
