import { afterAll, beforeAll, describe } from 'vitest'
import { type CompletePods, startCompletePods } from '../support/processes/complete-pod.js'
import { describeBlocks } from './blocks.js'
import { describeClientApps } from './client-apps.js'
import { describeDeliveries } from './deliveries.js'
import { describeDiscovery } from './discovery.js'
import { describeMoves } from './moves.js'
import { describePhotos } from './photos.js'
import { describeRelays } from './relays.js'

// The pods are started once, because this takes longer than most of the tests. Each part has people of its own.
describe('pods as their operators run them', () => {
  let pods: CompletePods
  beforeAll(async () => {
    pods = await startCompletePods(3)
  }, 180_000)
  afterAll(async () => {
    await Promise.all((pods ?? []).map((pod) => pod.stop()))
  })

  describeDiscovery(() => pods) // first: nothing is known yet
  describeDeliveries(() => pods)
  describePhotos(() => pods)
  describeRelays(() => pods)
  describeClientApps(() => pods)
  describeBlocks(() => pods)
  describeMoves(() => pods)
})
