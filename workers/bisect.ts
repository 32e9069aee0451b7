/** Runs a batch; after a permanent failure runs its halves, down to the items that cause it. Returns the error of each failed item. */
export async function bisect<Item>(
  items: readonly Item[],
  run: (items: readonly Item[]) => Promise<void>,
  isTemporary: (error: unknown) => boolean,
): Promise<ReadonlyMap<Item, unknown>> {
  if (items.length === 0) return new Map()
  try {
    await run(items)
    return new Map()
  } catch (error) {
    if (items.length === 1 || isTemporary(error)) return new Map(items.map((item) => [item, error]))
    const middle = items.length >> 1
    const left = await bisect(items.slice(0, middle), run, isTemporary)
    const right = await bisect(items.slice(middle), run, isTemporary)
    return new Map([...left, ...right])
  }
}
