/** Splits a list into parts of a size; the last one may be shorter. */
export function inChunks<Item>(items: readonly Item[], size: number): readonly (readonly Item[])[] {
  const chunks = Math.ceil(items.length / size)
  return Array.from({ length: chunks }, (_, index) => items.slice(index * size, (index + 1) * size))
}
