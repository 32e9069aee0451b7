import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createUser } from '../../src/domain/accounts/accounts.js'
import { mintToken } from '../../src/domain/accounts/tokens.js'
import type { OpenPod } from '../../src/pod/open-pod.js'
import { addPost } from '../support/databases/rows.js'
import { addRemotePerson } from '../support/people/remote-people.js'
import { openPodBySettings } from '../support/pods/pod-by-settings.js'
import { KNOWN_POD, makePlace, type Place } from './place.js'
import { pod } from './program.js'

describe('pod people forget', { timeout: 60_000 }, () => {
  let place: Place
  let open: OpenPod
  beforeAll(async () => {
    place = await makePlace(KNOWN_POD)
    open = await openPodBySettings(place.settings)
    await createUser(open, { username: 'alice', password: 'correct horse battery' })
  })
  afterAll(async () => {
    await open.close()
    await place.remove()
  })

  it('prints what it would delete, and deletes it with --yes', async () => {
    const mallory = await addRemotePerson(open, 'mallory@m.example')
    await addPost(open, mallory)

    const question = await pod(['people', 'forget', 'mallory@m.example'], place.settings)
    expect(question).toMatchObject({ code: 1, stdout: '' })
    expect(question.stderr).toContain('This would delete mallory@m.example (posts 1, photos 0, comments 0')
    expect(await open.db('people').where({ id: mallory.id })).toHaveLength(1)

    const unexplained = await pod(['people', 'forget', 'mallory@m.example', '--yes'], place.settings)
    expect(unexplained).toMatchObject({ code: 1, stderr: expect.stringContaining('needs a reason') })

    const forget = ['people', 'forget', 'acct:Mallory@m.example', '--yes', '--reason', 'A wrong guid', '--json']
    const done = await pod(forget, place.settings)
    expect(done).toMatchObject({ code: 0, stderr: '' })
    expect(JSON.parse(done.stdout)).toMatchObject({
      address: 'mallory@m.example',
      guid: mallory.guid,
      deleted: { posts: 1 },
    })
    expect(await open.db('people').where({ id: mallory.id })).toEqual([])
  })

  it.each([
    ['alice@pod.example', 'is a local person'],
    ['ghost@m.example', 'No person with the address ghost@m.example is known.'],
  ])('refuses %s', async (address, reason) => {
    const { code, stderr } = await pod(['people', 'forget', address, '--yes', '--reason', 'Spam'], place.settings)

    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining(reason) })
    expect(await open.db('people').where({ address: 'alice@pod.example' })).toHaveLength(1)
  })
})

describe('pod user password', { timeout: 60_000 }, () => {
  let place: Place
  let open: OpenPod
  beforeAll(async () => {
    place = await makePlace(KNOWN_POD)
    open = await openPodBySettings(place.settings)
    await createUser(open, { username: 'alice', password: 'correct horse battery' })
  })
  afterAll(async () => {
    await open.close()
    await place.remove()
  })

  it('ends tokens, unless --keep-applications is given', async () => {
    await mintToken(open, 'alice', { scopes: ['openid'], lifetime: 60 })
    const password = ['user', 'password', 'alice', '--password', 'another horse battery']

    const kept = await pod([...password, '--keep-applications'], place.settings)
    expect({ ...kept, tokens: await open.db('accessTokens') }).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('applications keep their access'),
      tokens: [expect.anything()],
    })

    const ended = await pod(password, place.settings)
    expect({ ...ended, tokens: await open.db('accessTokens') }).toMatchObject({
      code: 0,
      stdout: expect.stringContaining('All sessions and tokens have ended'),
      tokens: [],
    })
  })
})
