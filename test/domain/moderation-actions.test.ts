import { afterAll, beforeAll, expect, it } from 'vitest'
import { SYSTEM_ACTOR } from '../../src/domain/moderation/actor.js'
import { recordAction } from '../../src/domain/moderation/record-action.js'
import { inRequestTransaction } from '../../src/persistence/database/transactions.js'
import { openRecordedLog } from '../support/assertions/recorded-log.js'
import { repeatTransactions } from '../support/databases/repeated-transactions.js'
import { buildPod, type TestPod } from '../support/pods/build-pod.js'

let opened: TestPod
beforeAll(async () => {
  opened = await buildPod()
})
afterAll(() => opened.close())

it('logs an action once, after its commit', async () => {
  const { log, entries } = openRecordedLog()
  const lines = () => entries().filter(({ msg }) => msg === 'moderation action')
  const pod = { ...opened.pod, log }
  const action = {
    kind: 'purge',
    target: { type: 'post', guid: '0123456789abcdef', label: 'a post' },
    reason: 'A test',
    undo: { possible: false },
  } as const
  const refused = inRequestTransaction(pod, async (transaction) => {
    await recordAction(pod, transaction, SYSTEM_ACTOR, action)
    throw new Error('refused')
  })
  await expect(refused).rejects.toThrow('refused')
  expect(lines()).toEqual([])

  const repeating = { ...pod, db: repeatTransactions(pod.db) }
  const { id } = await inRequestTransaction(repeating, (transaction) =>
    recordAction(pod, transaction, SYSTEM_ACTOR, action),
  )
  expect(lines()).toMatchObject([{ action: id, kind: 'purge' }])
})
