import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { readConfig } from '../../../src/config/config.js'
import { isIdle } from '../../../src/jobs/operations/work-status.js'
import { createBackup } from '../../../src/operations/backup/create-backup.js'
import { openRepository } from '../../../src/operations/backup/repositories/repository.js'
import { restoreBackup } from '../../../src/operations/backup/restore-backup.js'
import { openServices } from '../../../src/services/open-services.js'
import { makeDeliveriesDue } from '../../soak/subscribing-pods.js'
import { until } from '../../soak/until.js'
import { testLog } from '../../support/assertions/test-log.js'
import { type CrashingDatabase, startCrashingDatabase } from '../../support/databases/crashing-database.js'
import { addPost } from '../../support/databases/rows.js'
import { commentBy, postBy } from '../../support/federation/entities.js'
import { envelopeOf } from '../../support/federation/envelopes.js'
import { fixedKeyCrypto } from '../../support/pods/fixed-key-crypto.js'
import { startPodProcess } from '../../support/processes/pod-process.js'
import { type PodUnderFaults, startPodUnderFaults } from './pod-under-faults.js'
import { postInbound } from './senders.js'
import { chance, store } from './this-run.js'

const MESSAGES = 600
const PER_SECOND = 50
const CONCURRENT_SENDERS = 8
const SETTLED_WITHIN = 120_000

let folder: string
/** Database server into which the backup is restored. */
let restoreTarget: CrashingDatabase
let podUnderFaults: PodUnderFaults
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'pod-backup-faults-'))
  podUnderFaults = await startPodUnderFaults({ store: store() })
  restoreTarget = await startCrashingDatabase()
})
afterAll(async () => {
  await podUnderFaults?.close()
  await restoreTarget?.stop()
  await rm(folder, { recursive: true, force: true })
})

it('F38: a backup is made while messages arrive and workers are killed, and is restored', async () => {
  const { pod, alice, otherPods } = podUnderFaults
  const quin = await otherPods.addKnownPerson()
  const local = await addPost(pod, alice)
  const messages = Array.from({ length: MESSAGES }, (_, index) =>
    index % 2 === 0 ? postBy(quin) : commentBy(quin, local),
  )
  const accepted = new Set<string>()
  const queue = [...messages]
  async function send(): Promise<void> {
    for (let message = queue.pop(); message !== undefined; message = queue.pop()) {
      const next = pause((CONCURRENT_SENDERS * 1_000) / PER_SECOND)
      const envelope = envelopeOf(quin, message)
      while ((await postInbound(podUnderFaults, '/receive/public', envelope)).status !== 202) await pause(250)
      accepted.add(message.guid)
      await next
    }
  }
  const over = new AbortController()
  async function killWorkers(index: number): Promise<void> {
    const random = chance()
    while (!over.signal.aborted) {
      await pause(random() * 1_500)
      await podUnderFaults.killAndReplace('worker', index)
    }
  }
  const repository = openRepository(join(folder, 'backups'), undefined)
  const uninterrupted = { signal: new AbortController().signal, report: () => undefined }
  async function backUp() {
    await until('a third of the messages is accepted', SETTLED_WITHIN, async () => accepted.size > MESSAGES / 3)
    const before = [...accepted]
    const manifest = await createBackup(pod, { repository, recipients: [], settings: [], ...uninterrupted })
    return { before, manifest }
  }

  const killing = Promise.all([0, 1].map(killWorkers))
  const sending = Promise.all(Array.from({ length: CONCURRENT_SENDERS }, send))
  const { before, manifest } = await backUp()
  await sending
  over.abort()
  await killing

  const { url } = restoreTarget
  const { REDIS_URL: _, ...environment } = podUnderFaults.environment
  // The restored pod has its queue in PostgreSQL.
  const settings = { ...environment, DATABASE_URL: url, DATA_DIR: join(folder, 'data') }
  const config = readConfig(settings)
  await restoreBackup(manifest, config, url, {
    repository,
    identities: undefined,
    replace: false,
    shouldEndTokens: false,
    ...uninterrupted,
  })
  const restored = await openServices(config, 'worker', { crypto: fixedKeyCrypto(), log: testLog() })
  const worker = await startPodProcess('worker', settings, folder)
  try {
    await until('no work is left', SETTLED_WITHIN, async () => {
      await makeDeliveriesDue(restored)
      return isIdle(restored)
    })
    const stored = [
      ...(await restored.db('posts').pluck<string[]>('guid')),
      ...(await restored.db('comments').pluck<string[]>('guid')),
    ]
    expect(before.filter((guid) => stored.filter((each) => each === guid).length !== 1)).toEqual([])
    const { commentsCount, id } = await restored.db('posts').where({ guid: local.guid }).first('id', 'commentsCount')
    expect(await restored.db('comments').where({ postId: id })).toHaveLength(commentsCount)
  } finally {
    await worker.kill()
    await restored.close()
  }
})
