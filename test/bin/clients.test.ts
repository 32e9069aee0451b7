import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { registerClient } from '../../src/domain/accounts/clients.js'
import type { OpenServices } from '../../src/services/open-services.js'
import { openPodBySettings } from '../support/pods/pod-by-settings.js'
import { KNOWN_POD, makePlace, type Place } from './place.js'
import { pod } from './program.js'

describe('pod clients', { timeout: 180_000 }, () => {
  let place: Place
  let open: OpenServices
  let clientId: string
  beforeAll(async () => {
    place = await makePlace(KNOWN_POD)
    open = await openPodBySettings(place.settings)
    const metadata = { application_type: 'native', token_endpoint_auth_method: 'none', subject_type: 'public' } as const
    const redirectUris = ['app.example:/callback']
    const { client } = await registerClient(open, {
      name: 'A phone',
      redirectUris,
      sectorIdentifierUri: undefined,
      apiDialect: null,
      metadata,
    })
    clientId = client.clientId
  })
  afterAll(async () => {
    await open.close()
    await place.remove()
  })

  it('dialect sets, shows and resets the dialect of a client', async () => {
    const set = await pod(['clients', 'dialect', clientId, 'diaspora'], place.settings)
    expect(set).toEqual({ code: 0, stderr: '', stdout: 'A phone now gets the dialect diaspora.\n' })

    const listed = await pod(['clients', 'list', '--json'], place.settings)
    expect(JSON.parse(listed.stdout)).toMatchObject([
      { client_id: clientId, client_name: 'A phone', client_api_dialect: 'diaspora', users: 0 },
    ])

    const reset = await pod(['clients', 'dialect', clientId, 'default', '--json'], place.settings)
    expect(JSON.parse(reset.stdout)).toMatchObject({ client_id: clientId, client_api_dialect: null })
    const table = await pod(['clients', 'list'], place.settings)
    expect(table.stdout).toMatch(
      new RegExp(`^client .*\n${clientId}  default \\(standard\\)  0 .* A phone\n1 client\n$`),
    )
  })

  it('dialect refuses an unknown client and an unknown dialect', async () => {
    const unknown = await pod(['clients', 'dialect', '0'.repeat(32), 'diaspora', '--json'], place.settings)
    expect(unknown).toMatchObject({ code: 1, stdout: '' })
    expect(JSON.parse(unknown.stderr)).toMatchObject({ reason: 'client_unknown' })

    const wrong = await pod(['clients', 'dialect', clientId, 'klingon'], place.settings)
    expect(wrong).toMatchObject({ code: 2, stderr: expect.stringContaining('standard, diaspora, default') })
  })
})
