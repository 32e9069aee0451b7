import { afterAll, beforeAll, expect, it } from 'vitest'
import { makeStaff, type StaffClient } from '../../support/people/staff.js'
import type { ApiPerson } from '../../support/pods/api-pod.js'
import { publish, type SampleApiPod, startSampleApiPod } from '../../support/pods/sample-api-pod.js'

let api: SampleApiPod
let mod: StaffClient
let other: StaffClient
let alice: ApiPerson
beforeAll(async () => {
  api = await startSampleApiPod({ environment: { WRITE_LIMIT: '0' } })
  mod = await makeStaff(api, 'mod', 'moderator')
  other = await makeStaff(api, 'other-mod', 'moderator')
  ;({ alice } = api)
})
afterAll(() => api.close())

const sendForm = (path: string, body: string, method: 'POST' | 'PATCH' = 'POST') =>
  api.call({
    ...{ method, path: `/api/admin/v1${path}`, token: mod.token, body },
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  })

async function newCase(): Promise<number> {
  const guid = await publish(api, api.bob, { text: 'Cheap watches', public: true })
  await alice.post(`/posts/${guid}/report`, { reason: 'Spam' })
  const { body } = await mod.get('/cases?state=open')
  return body.find(({ target }: { target: { guid: string } }) => target.guid === guid).id
}

it('a form has booleans, numbers and lists as texts', async () => {
  const id = await newCase()
  await other.post(`/cases/${id}/take`)

  expect((await sendForm(`/cases/${id}/take`, 'force=no')).body).toMatchObject({ code: 409, reason: 'taken_by_other' })
  expect((await sendForm(`/cases/${id}/take`, 'force=Yes')).body).toMatchObject({ changed: true, taken_by: 'mod' })
  expect((await sendForm(`/cases/${id}/take`, 'force=maybe')).body).toMatchObject({ code: 422, field: 'force' })
  const warned = await sendForm(`/people/${api.bob.guid}/silence`, `reason=Spam&case_id=${id}`)
  expect(warned.body).toMatchObject({ changed: true })
  expect((await mod.get(`/cases/${id}`)).body.actions).toMatchObject([{ kind: 'silence' }])
  const made = await sendForm('/invitations', 'uses=3&reason=Choir')
  expect(made.body).toMatchObject({ uses: 3 })
  expect((await sendForm(`/invitations/${made.body.id}`, 'uses=4&reason=Choir', 'PATCH')).body).toMatchObject({
    uses: 4,
  })
  expect((await sendForm('/invitations', 'uses=three&reason=Choir')).body).toMatchObject({ code: 422, field: 'uses' })
  const decided = await sendForm('/sign_ups/decide', 'ids[]=999998&ids[]=999999&decision=approve&reason=x')
  expect([decided.status, decided.body]).toEqual([200, { decided: [] }])
  expect((await sendForm('/sign_ups/decide', 'ids=999999&decision=approve&reason=x')).body).toEqual({ decided: [] })
  const rule = 'domain=form.example&state=limited&port=3000&subdomains=false&obfuscate=1&reason=Spam'
  expect((await sendForm('/pod_rules', rule)).body).toMatchObject({
    ...{ domain: 'form.example', port: 3000, subdomains: false, obfuscate: true },
  })
})

it('booleans are also texts in JSON and in queries; numbers in JSON are none', async () => {
  const id = await newCase()
  await other.post(`/cases/${id}/take`)

  expect((await mod.post(`/cases/${id}/take`, { force: 'false' })).body).toMatchObject({ reason: 'taken_by_other' })
  expect((await mod.post(`/cases/${id}/take`, { force: 'TRUE' })).body).toMatchObject({ changed: true })
  expect((await mod.post('/invitations', { uses: '3', reason: 'x' })).body).toMatchObject({ code: 422, field: 'uses' })
  const addresses = async (query: string) => {
    const { body } = await mod.get(`/people?q=alice&${query}`)
    return body.map(({ network_id: address }: { network_id: string }) => address)
  }
  expect(await addresses('local=1')).toEqual([alice.address])
  expect(await addresses('local=Off')).toEqual([])
  expect((await mod.get('/people?local=2')).body).toMatchObject({ code: 422, field: 'local' })
})

it('lists in queries may have brackets, and a path the ending .json', async () => {
  const id = await newCase()
  await mod.post(`/cases/${id}/take`)
  const states = async (query: string) => {
    const { body } = await mod.get(`/cases?${query}`)
    return [...new Set(body.map(({ state }: { state: string }) => state))]
  }

  for (const query of ['state=taken', 'state[]=taken', 'state%5B%5D=taken', 'state[]=taken&state[]=dismissed'])
    expect([query, await states(query)]).toEqual([query, ['taken']])
  expect((await mod.get('/cases?state[]=no')).body).toMatchObject({ code: 422 })
  expect((await mod.get(`/cases/${id}.json`)).body).toMatchObject({ id, state: 'taken' })
})
