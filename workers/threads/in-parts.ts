interface PartLimits {
  /** So many are worth a trip to a thread. */
  readonly least: number
  readonly most: number
}

/** Something for each thread, where there is enough for that, and as much for one as for another: all wait for the last part. */
export function inParts<Item>(
  items: readonly Item[],
  { least, most }: PartLimits,
  threads: number,
): readonly (readonly Item[])[] {
  const parts = Math.max(Math.ceil(items.length / most), Math.min(threads, Math.floor(items.length / least)))
  const endOf = (part: number) => Math.round((part * items.length) / parts)
  return Array.from({ length: parts }, (_, part) => items.slice(endOf(part), endOf(part + 1)))
}
