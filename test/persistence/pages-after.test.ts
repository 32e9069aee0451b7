import { expect, it } from 'vitest'
import { pagesAfter } from '../../src/persistence/sql/pages-after.js'

async function pagesOf(rows: readonly number[], size: number) {
  const positions: number[] = []
  const pages: (readonly number[])[] = []
  const list = pagesAfter({
    size,
    start: 0,
    positionOf: (row: number) => row,
    async read(after) {
      positions.push(after)
      return rows.filter((row) => row > after).slice(0, size)
    },
  })
  for await (const page of list) pages.push(page)
  return { pages, positions }
}

it.each([
  [[], [], [0]],
  [[3], [[3]], [0]],
  [[3, 5], [[3, 5]], [0, 5]],
  [
    [3, 5, 8],
    [[3, 5], [8]],
    [0, 5],
  ],
])('reads %j in pages of two, each after the last row of the one before', async (rows, pages, positions) => {
  expect(await pagesOf(rows, 2)).toEqual({ pages, positions })
})
