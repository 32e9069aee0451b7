import { expect, it } from 'vitest'
import { authorizeClient } from '../../src/domain/accounts/authorizations.js'
import { registerClient } from '../../src/domain/accounts/clients.js'
import { prune } from '../../workers/handlers/maintenance.js'
import { buildPod } from '../support/pods/build-pod.js'

it('client registrations without any authorization are deleted after a month', async () => {
  await using pod = await buildPod()
  await pod.people('alice')
  const register = async () => {
    const metadata = { application_type: 'web', token_endpoint_auth_method: 'none', subject_type: 'public' } as const
    const redirectUris = ['https://client.example/callback']
    const registration = { name: undefined, redirectUris, sectorIdentifierUri: undefined, apiDialect: null, metadata }
    return (await registerClient(pod.pod, registration)).client.clientId
  }
  const [unused, used] = [await register(), await register()]
  await authorizeClient(pod.pod, { address: 'alice@pod.example', clientId: used }, ['openid'])
  await pod.pod.db('clients').update({ createdAt: pod.pod.db.raw(`now() - interval '31 days'`) })
  const fresh = await register()

  await prune(pod.pod)

  const left = await pod.pod.db('clients').orderBy('id')
  expect(left.map(({ clientId }) => clientId)).toEqual([used, fresh])
  expect(left.map(({ clientId }) => clientId)).not.toContain(unused)
})
