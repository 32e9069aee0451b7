import { expect, it } from 'vitest'
import { newGuid } from '../../../src/domain/new-guid.js'
import type { Signer } from '../../../src/federation/inbound/find-signers.js'
import { countChanges } from '../../../src/federation/inbound/store/counter-changes.js'
import { commentBy } from '../../support/federation/entities.js'
import { startFakePods } from '../../support/federation/fake-pods.js'

it('a comment lifts its post by the time of its arrival, not by its own', async () => {
  const fakePods = await startFakePods()
  const quin = fakePods.person('quin@q.example')
  const comment = commentBy(quin, { guid: newGuid() }, { created_at: new Date('2001-02-03T04:05:06Z') })
  const entity = { ...comment, elements: [] }
  const message = {
    inbound: { envelope: '', acceptedAt: new Date('2026-01-02T03:04:04Z') },
    sender: quin.address,
    signer: {} as Signer, // nothing of the signer counts
    entity,
    signature: 'valid',
    isParentLocal: false,
  } as const
  const now = new Date('2026-01-02T03:04:05Z')

  expect(countChanges([{ id: 1, message }], now).posts).toMatchObject([{ guid: entity.parent_guid, latest: now }])
  await fakePods.close()
})
