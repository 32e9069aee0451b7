import { expect, it } from 'vitest'
import { pagesBehind } from '../../src/persistence/sql/pages-behind.js'

async function pagesOf(rows: readonly number[], size: number) {
  const positions: number[] = []
  const pages: (readonly number[])[] = []
  const list = pagesBehind({
    size,
    start: 0,
    positionOf: (row: number) => row,
    async read(behind) {
      positions.push(behind)
      return rows.filter((row) => row > behind).slice(0, size)
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
])('reads %j in pages of two, each behind the last row of the one before', async (rows, pages, positions) => {
  expect(await pagesOf(rows, 2)).toEqual({ pages, positions })
})
