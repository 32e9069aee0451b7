export interface PartLimits {
  /** The fewest items for which a task of a thread pays. */
  readonly min: number
  readonly max: number
}

/** Splits items into parts of equal size, one for each thread where there are enough: the result waits for the last part. */
export function inParts<Item>(
  items: readonly Item[],
  { min, max }: PartLimits,
  threads: number,
): readonly (readonly Item[])[] {
  const parts = Math.max(Math.ceil(items.length / max), Math.min(threads, Math.floor(items.length / min)))
  const endOf = (part: number) => Math.round((part * items.length) / parts)
  return Array.from({ length: parts }, (_, part) => items.slice(endOf(part), endOf(part + 1)))
}
