/**
 * Runs a batch; where that fails for good it runs the halves, down to the items that are the cause. Returns the error of each
 * item that has not reached its end.
 */
export async function bisect<Item>(
  items: readonly Item[],
  run: (items: readonly Item[]) => Promise<void>,
  isPassing: (error: unknown) => boolean,
): Promise<ReadonlyMap<Item, unknown>> {
  if (items.length === 0) return new Map()
  try {
    await run(items)
    return new Map()
  } catch (error) {
    if (items.length === 1 || isPassing(error)) return new Map(items.map((item) => [item, error]))
    const middle = items.length >> 1
    const left = await bisect(items.slice(0, middle), run, isPassing)
    const right = await bisect(items.slice(middle), run, isPassing)
    return new Map([...left, ...right])
  }
}
