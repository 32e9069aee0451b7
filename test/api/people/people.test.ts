import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { closeUser } from '../../../src/domain/accounts/closing/close-now.js'
import { newGuid } from '../../../src/domain/new-guid.js'
import { statementsDuring } from '../../support/assertions/statement-count.js'
import { addRemotePerson } from '../../support/people/remote-people.js'
import { expectError } from '../../support/pods/api-pod.js'
import { type SampleApiPod, startSampleApiPod } from '../../support/pods/sample-api-pod.js'

const DETAILS = { birthday: '1984-01-02', gender: 'yes', location: 'Berlin', bio: 'A cat person.' }

let api: SampleApiPod
beforeAll(async () => {
  api = await startSampleApiPod()
})
afterAll(() => api.close())

describe('GET /users/:person_guid', () => {
  it('returns the relation between viewer and person', async () => {
    const answer = await api.alice.get(`/users/${api.bob.guid}`)

    expect(answer.status).toBe(200)
    expect(answer.body).toMatchObject({
      guid: api.bob.guid,
      network_id: 'bob@pod.example',
      name: 'bob@pod.example',
      tags: [],
      relationship: { receiving: true, sharing: true },
      aspects: [{ id: api.friendsAspectId, name: 'Friends' }],
      blocked: false,
    })
  })

  it('hides the private fields of a person without any contacts', async () => {
    await api.dan.editProfile({ ...DETAILS, tags: ['tea'] })

    const answer = await api.alice.get(`/users/${api.dan.guid}`)

    expect(Object.keys(answer.body).sort()).toEqual(
      ['aspects', 'avatar', 'blocked', 'diaspora_id', 'guid', 'name', 'network_id', 'relationship', 'tags'].sort(),
    )
    expect(answer.body).toMatchObject({
      relationship: { receiving: false, sharing: false },
      aspects: [],
      tags: ['tea'],
    })
  })

  it('shows the private fields of a person who shares with the viewer', async () => {
    await api.carol.editProfile(DETAILS)

    const answer = await api.alice.get(`/users/${api.carol.guid}`)

    expect(answer.body).toMatchObject({ ...DETAILS, relationship: { receiving: false, sharing: true }, aspects: [] })
  })

  it('hides the private fields of a person with whom only the viewer shares', async () => {
    await api.alice.editProfile({ ...DETAILS, publicDetails: false })

    const answer = await api.carol.get(`/users/${api.alice.guid}`)

    expect(answer.body.relationship).toEqual({ receiving: true, sharing: false })
    for (const detail of Object.keys(DETAILS)) expect(answer.body).not.toHaveProperty(detail)
  })

  it('shows the private fields of a person whose profile is public', async () => {
    await api.dan.editProfile({ ...DETAILS, publicDetails: true })

    expect((await api.alice.get(`/users/${api.dan.guid}`)).body).toMatchObject(DETAILS)
    await api.dan.editProfile({ publicDetails: false })
  })

  it('hides the contact state from a token without the scope for contacts', async () => {
    const answer = await (await api.alice.with()).get(`/users/${api.bob.guid}`)

    expect(answer.status).toBe(200)
    expect(answer.body).toMatchObject({ relationship: null, aspects: null, blocked: false })
  })

  it('an unknown guid is a 404, in every form', async () => {
    for (const guid of [newGuid(), 'x', '%00', '1', 'a%2Fb', 'x'.repeat(400)]) {
      expectError(await api.alice.get(`/users/${guid}`), 404)
    }
  })

  it('a closed account is a 404', async () => {
    const { fay } = await api.people('fay')
    expect((await api.alice.get(`/users/${fay.guid}`)).status).toBe(200)

    await closeUser(api.pod, 'fay')

    for (const list of ['', '/posts', '/photos']) expectError(await api.alice.get(`/users/${fay.guid}${list}`), 404)
  })

  it('hides unlisted people from tokens without contacts:read', async () => {
    await api.dan.editProfile({ searchable: false })

    expectError(await (await api.alice.with()).get(`/users/${api.dan.guid}`), 404)
    expect((await (await api.alice.with('contacts:read')).get(`/users/${api.dan.guid}`)).status).toBe(200)
    expect((await (await api.alice.with()).get(`/users/${api.dan.guid}/posts`)).status).toBe(200)
    expect((await (await api.dan.with()).get(`/users/${api.dan.guid}`)).status).toBe(200)
    await api.dan.editProfile({ searchable: true })
  })

  it('returns both profiles of the viewer in one', async () => {
    const { unread_notifications, unread_conversations, unread_messages, ...own } = (await api.alice.get('/user')).body

    const answer = await api.alice.get(`/users/${api.alice.guid}`)

    expect(answer.body).toEqual({
      ...own,
      blocked: false,
      relationship: { receiving: false, sharing: false },
      aspects: [],
    })
  })

  it('withholds the private fields of the viewer as their own profile does', async () => {
    await api.alice.editProfile({ ...DETAILS, publicDetails: false })

    const answer = await (await api.alice.with()).get(`/users/${api.alice.guid}`)

    expect(answer.body).toMatchObject({ birthday: null, gender: null, location: null, bio: null, searchable: true })
  })

  it('returns people of other pods', async () => {
    const quin = await addRemotePerson(api.pod, 'quin@q.example', {
      profile: { firstName: 'Quin', lastName: 'Quartz' },
    })

    const answer = await api.alice.get(`/users/${quin.guid}`)

    expect(answer.body).toMatchObject({ guid: quin.guid, network_id: 'quin@q.example', name: 'Quin Quartz' })
  })

  it('a person costs two statements: authentication and the person', async () => {
    expect(await statementsDuring(() => api.alice.get(`/users/${api.bob.guid}`))).toBe(2)
  })
})
