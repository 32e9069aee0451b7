import { expect, it } from 'vitest'
import { chooseRetained } from '../../src/operations/backup/retention.js'

const at = (time: string) => ({ startedAt: new Date(`${time}:00Z`) })
const backups = [
  at('2026-01-31T03:30'),
  at('2026-02-27T03:30'),
  at('2026-03-01T03:30'), // a Sunday
  at('2026-03-02T03:30'),
  at('2026-03-03T03:30'),
  at('2026-03-03T12:00'),
]
const keptBackups = (daily: number, weekly: number, monthly: number) =>
  [...chooseRetained(backups, { daily, weekly, monthly })].map((backup) => backups.indexOf(backup)).sort()

it('keeps the newest backup of each of the last days, weeks and months', () => {
  expect(keptBackups(2, 0, 0)).toEqual([3, 5])
  expect(keptBackups(0, 2, 0)).toEqual([2, 5])
  expect(keptBackups(0, 0, 2)).toEqual([1, 5])
  expect(keptBackups(1, 2, 3)).toEqual([0, 1, 2, 5])
})

it('keeps the newest backup always', () => {
  expect(keptBackups(0, 0, 0)).toEqual([5])
})
